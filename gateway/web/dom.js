// Builds elements. Text becomes a text node, never markup.

/** Makes an element; null, undefined and false attributes are omitted, `onNAME` is a listener. */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A link that opens in a new tab; plain text unless the address is http or https. */
export function outside(address, text) {
  const url = URL.canParse(address) ? new URL(address) : null;
  if (url === null || !["http:", "https:"].includes(url.protocol)) return h("span", {}, text);
  return h("a", { href: url.href, target: "_blank", rel: "noopener noreferrer nofollow" }, text);
}

/** A Unix time in the reader's time zone and language. */
export function moment(seconds) {
  const date = new Date(seconds * 1000);
  const today = date.toDateString() === new Date().toDateString();
  const shown = today ? { timeStyle: "short" } : { dateStyle: "medium", timeStyle: "short" };
  return h("time", { datetime: date.toISOString() }, date.toLocaleString([], shown));
}

/** The day of a Unix time: "Today", "Yesterday", or its date. */
export function dayOf(seconds) {
  const date = new Date(seconds * 1000);
  const yesterday = new Date();
  yesterday.setDate(yesterday.getDate() - 1);
  if (date.toDateString() === new Date().toDateString()) return "Today";
  if (date.toDateString() === yesterday.toDateString()) return "Yesterday";
  return date.toLocaleDateString([], { weekday: "short", day: "numeric", month: "long", year: "numeric" });
}

/** Runs `change` and keeps the end of the page in view if it was visible. */
export function keepingEnd(change) {
  const page = document.documentElement;
  const atEnd = page.scrollHeight - page.scrollTop - page.clientHeight < 80;
  change();
  if (atEnd) page.scrollTop = page.scrollHeight;
}

/** Copies text; true on success. Only pages over HTTPS or from localhost have the clipboard API. */
export async function copy(text) {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(() => true, () => false);
  }
  const box = h("textarea", { class: "hidden", "aria-hidden": "true" });
  box.value = text;
  document.body.append(box);
  box.select();
  const copied = document.execCommand("copy");
  box.remove();
  return copied;
}

/** A button that copies `text()` and shows whether that worked. */
export function copyButton(text) {
  const button = h("button", { type: "button", class: "quiet copy" }, "Copy");
  button.addEventListener("click", async () => {
    button.textContent = (await copy(text())) ? "Copied" : "Not allowed: select the text";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return button;
}
