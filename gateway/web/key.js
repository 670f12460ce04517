// The API key, kept only in this tab's session storage.

import { byId } from "./dom.js";

const NAME = "hearth.key";
let asking = null; // the promise of the open dialog, shared by concurrent requests
let wanted = false; // the server has rejected a request without a key
let declined = 0; // number of times the dialog was closed without a key

export const key = () => sessionStorage.getItem(NAME);

export const timesDeclined = () => declined;

/** Forgets the key, and reloads the page to discard everything fetched with it. */
export function forgetKey() {
  sessionStorage.removeItem(NAME);
  location.reload();
}

/** Asks for a key and shows `reason`; true if a new one was given. */
export function askForKey(reason) {
  wanted = true;
  asking ??= ask(reason).finally(() => {
    asking = null;
    showKeyButton();
  });
  return asking;
}

async function ask(reason) {
  const [dialog, input] = [byId("key-dialog"), byId("key")];
  byId("key-reason").textContent = reason;
  input.value = "";
  dialog.returnValue = "";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  const given = input.value.trim();
  input.value = "";
  if (dialog.returnValue !== "use") {
    declined += 1;
    return false;
  }
  // fetch reports other characters in a header as a network error.
  if (!/^[\x21-\x7e]+$/.test(given)) return ask("A key has neither spaces nor accented letters. Check it.");
  sessionStorage.setItem(NAME, given);
  return true;
}

function showKeyButton() {
  const button = byId("key-button");
  button.hidden = !wanted && key() === null;
  button.textContent = key() === null ? "Enter a key" : "Forget the key";
}

/** The header's button: enters a key if one is needed, or forgets the present one. */
export function setUpKey() {
  byId("key-button").addEventListener("click", async () => {
    if (key() !== null) forgetKey();
    else if (await askForKey("This server needs a key.")) location.reload();
  });
  // Enter would press the form's first button, Cancel.
  byId("key").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    byId("key-dialog").querySelector("button[value=use]").click();
  });
  showKeyButton();
}
