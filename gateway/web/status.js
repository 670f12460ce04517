// The page's header: the model's name, its notice from the catalog, and its state.

import { call, sentence } from "./api.js";
import { byId } from "./dom.js";
import { render } from "./markdown.js";
import { loadingText } from "./stages.js";

const POLL_SECONDS = 20;
const STARTING_POLLS = 120; // one per second while the model starts
const KEY_NEEDED = new Set([401, 403]);

let known = "Connecting…"; // the last known state
let ready = false;
let waking = false;
let loading = null; // progress that a running request reports

/** Shows the model's name and notice; asks for a key if the server wants one. Throws ApiError. */
export async function showModel() {
  const { data } = await call("GET", "/v1/models");
  const model = data[0];
  byId("model").textContent = model.id;
  byId("notice").replaceChildren(render(model.notice ?? ""));
  byId("notice").hidden = !model.notice;
  return model.id;
}

/** Polls the server's state, without waking the model. */
export async function look() {
  known = await stateText();
  show();
}

/** Starts loading an unloaded model when the user begins to type. */
export async function wake() {
  if (ready || waking) return;
  waking = true;
  try {
    await call("POST", "/v1/typing", { quiet: true });
    for (let looks = 0; looks < STARTING_POLLS && !ready; looks += 1) {
      await look();
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  } catch {
    // The message itself will show the error.
  } finally {
    waking = false;
  }
}

/** Sets the loading progress that a running request reports, null for none. */
export function setLoading(fraction) {
  loading = fraction;
  show();
}

function show() {
  const text = loading === null ? known : loadingText({ fraction: loading });
  const line = byId("state");
  // Screen readers announce every change of a live region.
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

/** Polls while the page is visible. */
export function setUpStatus() {
  setInterval(() => document.visibilityState === "visible" && look(), POLL_SECONDS * 1000);
  document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && look());
}
