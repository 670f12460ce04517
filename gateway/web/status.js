// The head of the page: which model answers, what its catalog row remarks, and how it is.

import { call, sentence } from "./api.js";
import { byId } from "./dom.js";
import { render } from "./markdown.js";
import { loadingText } from "./stages.js";

const LOOK_SECONDS = 20;
const STARTING_LOOKS = 120; // a second apart, while the model that was woken starts
const KEY_NEEDED = new Set([401, 403]);

let known = "Connecting…"; // as last seen
let ready = false;
let waking = false;
let loading = null; // fraction of a start that a running request tells of

/** Names the model and shows its notice; asks for a key where the server wants one. Throws ApiError. */
export async function showModel() {
  const { data } = await call("GET", "/v1/models");
  const model = data[0];
  byId("model").textContent = model.id;
  byId("notice").replaceChildren(render(model.notice ?? ""));
  byId("notice").hidden = !model.notice;
  return model.id;
}

/** Looks now how the server is. That does not wake the model. */
export async function look() {
  known = await stateText();
  show();
}

/** Somebody has begun to write: a model that was let go is loaded meanwhile. */
export async function wake() {
  if (ready || waking) return;
  waking = true;
  try {
    await call("POST", "/v1/typing", { quiet: true });
    for (let looks = 0; looks < STARTING_LOOKS && !ready; looks += 1) {
      await look();
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  } catch {
    // The message itself will tell what is wrong.
  } finally {
    waking = false;
  }
}

/** Takes over what a running request tells: that the model is being started. Null: it is not. */
export function setLoading(fraction) {
  loading = fraction;
  show();
}

function show() {
  const text = loading === null ? known : loadingText({ fraction: loading });
  const line = byId("state");
  // A live region is read out whenever it changes.
  if (line.textContent !== text) line.textContent = text;
}

async function stateText() {
  ready = false;
  try {
    await call("GET", "/readyz", { quiet: true });
    const { models } = await call("GET", "/api/ps", { quiet: true });
    const name = byId("model").textContent;
    ready = models.some((model) => [name, `${name}:latest`].includes(model.name));
    if (ready) return "Ready";
    return waking ? "Starting the model" : "Asleep: it starts when you write";
  } catch (error) {
    if (error.status === 0) return "No connection";
    return KEY_NEEDED.has(error.status) ? "A key is needed" : sentence(error.message);
  }
}

/** Looks again every so often while the page is seen. */
export function setUpStatus() {
  setInterval(() => document.visibilityState === "visible" && look(), LOOK_SECONDS * 1000);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && look());
}
