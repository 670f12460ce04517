// The API key: in this tab's session storage and nowhere else.

import { byId } from "./dom.js";

const NAME = "hearth.key";
let asking = null; // the promise of the open dialog: requests that fail together ask once
let wanted = false; // the server has refused a request without a key
let declined = 0; // how often the dialog was closed without one

export const key = () => sessionStorage.getItem(NAME);

/** A number that is another one after the dialog was closed without a key. */
export const timesDeclined = () => declined;

/** Forgets the key, and with a fresh page all that it has fetched. */
export function forgetKey() {
  sessionStorage.removeItem(NAME);
  location.reload();
}

/** Asks for a key and says why; true when there is a new one. */
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
  // Anything else is no header value, and fetch would call it a network error.
  if (!/^[\x21-\x7e]+$/.test(given)) return ask("A key has neither blanks nor accents; look at it again.");
  sessionStorage.setItem(NAME, given);
  return true;
}

function showKeyButton() {
  const button = byId("key-button");
  button.hidden = !wanted && key() === null;
  button.textContent = key() === null ? "Enter a key" : "Forget the key";
}

/** The button in the head: enters a key where one is wanted, forgets the one that is there. */
export function setUpKey() {
  byId("key-button").addEventListener("click", async () => {
    if (key() !== null) forgetKey();
    else if (await askForKey("The server wants to know who is asking.")) location.reload();
  });
  // In a form, Enter presses the first button, which is Cancel.
  byId("key").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    byId("key-dialog").querySelector("button[value=use]").click();
  });
  showKeyButton();
}
