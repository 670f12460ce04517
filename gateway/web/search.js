// The search in what was said, above the list of conversations.

import { call } from "./api.js";
import { byId, h, moment } from "./dom.js";
import { problem } from "./problem.js";

const MOST = 20;

export function setUpSearch() {
  const field = byId("search-field");
  field.addEventListener("change", () => search(field.value.trim()));
  field.addEventListener("input", () => field.value === "" && show(null));
}

async function search(words) {
  if (words === "") return show(null);
  try {
    const page = await call("GET", `/v1/conversations/search?limit=${MOST}&q=${encodeURIComponent(words)}`);
    show(page.data.length ? page.data.map(row) : [h("li", { class: "hint" }, "Nobody said that.")]);
  } catch (error) {
    show([h("li", {}, problem(error, () => search(words)))]);
  }
}

/** Shows rows instead of the list of conversations; null shows that list again. */
function show(rows) {
  byId("found").replaceChildren(...(rows ?? []));
  byId("conversations").hidden = rows !== null;
}

function row({ conversation, role, speaker, snippet, created_at: time }) {
  const who = speaker || (role === "user" ? "You" : "The model");
  const link = { href: `#/chat/${encodeURIComponent(conversation)}` };
  return h("li", {}, h("a", link, h("span", {}, snippet), h("span", { class: "hint" }, `${who} · `, moment(time))));
}
