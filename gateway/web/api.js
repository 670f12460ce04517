// Requests to the server that served this page, with the key, and errors as the API gives them.

import { askForKey, key, timesDeclined } from "./key.js";
import { events } from "./sse.js";

/** An error to show. `status` 0: no reply at all; `retryAfter` in seconds, null when the server names no time. */
export class ApiError extends Error {
  constructor(message, { status = 0, code = "", requestId = "", retryAfter = null } = {}) {
    super(message);
    Object.assign(this, { status, code, requestId, retryAfter });
  }

  /** Whether the same request can do better later: never what is wrong in itself. */
  get canRetry() {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}

const GONE = "The server cannot be reached. It may be stopped or restarting.";
const BROKEN = "The connection broke off before the end.";

/** The reply of a request that went well. Asks for a key where one is wanted, unless `quiet`. Throws ApiError. */
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
    // Another request may have got a new key meanwhile, or the answer that there is none.
    const reason = used === null ? "This server answers those who have one." : sentence(error.message);
    if (key() !== used) continue;
    if (timesDeclined() !== declined || !(await askForKey(reason))) throw error;
  }
}

/** The JSON reply of a request. Throws ApiError. */
export async function call(method, path, options = {}) {
  const found = await reply(method, path, options);
  return connected(() => found.json(), BROKEN);
}

/** Yields the {event, data} of a streamed reply. An `error` event and a broken connection throw ApiError. */
export async function* stream(method, path, options = {}) {
  const found = await reply(method, path, { ...options, accept: "text/event-stream" });
  const incoming = events(found.body);
  try {
    for (;;) {
      const { done, value } = await connected(() => incoming.next(), BROKEN);
      if (done) return;
      if (value.event === "error") throw told(value.data.error, 500);
      yield value;
    }
  } finally {
    await incoming.return();
  }
}

/** Runs `work`; what fails there is the network, but for an abort, which stays what it is. */
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
  return told(error, found.status, retryAfter);
}

function told(error, status, retryAfter = null) {
  const { message, code, request_id: requestId, retry_after: wait = null } = error;
  // In a stream there is no status; what kind of error it is says whether trying again can help.
  const real = error.type === "invalid_request_error" && status === 500 ? 400 : status;
  return new ApiError(String(message), { status: real, code, requestId, retryAfter: retryAfter ?? wait });
}

/** The message as a sentence of its own. */
export const sentence = (message) => message.charAt(0).toUpperCase() + message.slice(1) + (/[.!?…]$/.test(message) ? "" : ".");
