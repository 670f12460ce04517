// Requests to this page's server, with the key, and the API's errors.

import { askForKey, key, timesDeclined } from "./key.js";
import { events } from "./sse.js";

/** An error to show. `status` is 0 without a reply; `retryAfter` is in seconds, null if the server names no time. */
export class ApiError extends Error {
  constructor(message, { status = 0, code = "", requestId = "", retryAfter = null } = {}) {
    super(message);
    Object.assign(this, { status, code, requestId, retryAfter });
  }

  /** Whether the same request can succeed later. */
  get canRetry() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

const GONE = "The server cannot be reached. It may be stopped or restarting.";
const BROKEN = "The connection was lost before the end.";

/** The reply of a successful request. Asks for a key if the server wants one, unless `quiet`. Throws ApiError. */
async function reply(method, path, { body, signal, accept = "application/json", quiet = false } = {}) {
  for (;;) {
    const [used, declined] = [key(), timesDeclined()];
    const headers = { Accept: accept };
    if (used !== null) headers.Authorization = `Bearer ${used}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const content = body === undefined ? undefined : JSON.stringify(body);
    const found = await connected(() => fetch(path, { method, headers, body: content, signal, cache: "no-store" }), GONE);
    if (found.ok) return found;
    const error = await refusal(found);
    if (found.status !== 401 || quiet) throw error;
    // Another request may have asked for the key meanwhile.
    const reason = used === null ? "This server needs a key." : sentence(error.message);
    if (key() !== used) continue;
    if (timesDeclined() !== declined || !(await askForKey(reason))) throw error;
  }
}

/** The JSON reply of a request. Throws ApiError. */
export async function call(method, path, options = {}) {
  const found = await reply(method, path, options);
  return connected(() => found.json(), BROKEN);
}

/** Yields the {event, data} of a streamed reply. Throws ApiError for an `error` event and a lost connection. */
export async function* stream(method, path, options = {}) {
  const found = await reply(method, path, { ...options, accept: "text/event-stream" });
  const incoming = events(found.body);
  try {
    for (;;) {
      const { done, value } = await connected(() => incoming.next(), BROKEN);
      if (done) return;
      if (value.event === "error") throw apiError(value.data.error, 500);
      yield value;
    }
  } finally {
    await incoming.return();
  }
}

/** Runs `work` and turns its errors, except an abort, into network errors. */
async function connected(work, message) {
  try {
    return await work();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(message);
  }
}

async function refusal(found) {
  const seconds = Number.parseInt(found.headers.get("Retry-After") ?? "", 10);
  const retryAfter = Number.isNaN(seconds) ? null : seconds;
  const document = await found.json().catch(() => null);
  const error = document?.error ?? { message: `The server answered ${found.status} ${found.statusText}.` };
  return apiError(error, found.status, retryAfter);
}

function apiError(error, status, retryAfter = null) {
  const { message, code, request_id: requestId, retry_after: wait = null } = error;
  // A stream has no status; the type of the error says whether a retry can help.
  const real = error.type === "invalid_request_error" && status === 500 ? 400 : status;
  return new ApiError(String(message), { status: real, code, requestId, retryAfter: retryAfter ?? wait });
}

export const sentence = (message) => message.charAt(0).toUpperCase() + message.slice(1) + (/[.!?…]$/.test(message) ? "" : ".");
