// A page of the wiki, for citations of wikis that are nowhere else: #/wiki/TITLE or #/wiki/TITLE#ANCHOR.

import { call } from "./api.js";
import { byId, h, outside } from "./dom.js";
import { render } from "./markdown.js";
import { problem } from "./problem.js";

let wanted = ""; // the title of the last request

export async function openWikiPage(title, anchor) {
  wanted = title;
  const shown = byId("wiki");
  shown.replaceChildren(h("p", { class: "hint", role: "status" }, "Loading…"));
  try {
    const page = await call("GET", `/wiki/page?title=${encodeURIComponent(title)}`);
    if (wanted !== title) return;
    shown.replaceChildren(h("h2", {}, page.title), ...elsewhere(page.url), ...page.sections.flatMap(section));
    document.getElementById(idOf(anchor))?.scrollIntoView();
  } catch (error) {
    if (wanted === title) shown.replaceChildren(problem(error, () => openWikiPage(title, anchor)));
  }
}

const idOf = (anchor) => `wiki-section-${anchor}`;

function section({ heading, anchor, level, text }) {
  const name = `h${Math.min(level + 1, 6)}`;
  const body = h("div", { class: "text" }, render(text));
  return heading ? [h(name, { id: idOf(anchor) }, heading), body] : [body];
}

function elsewhere(url) {
  return ownPage(url) ? [] : [h("p", { class: "hint" }, outside(url, url))];
}

/** The address within this page of a citation that leads to it, else null. */
export function ownPage(url) {
  const hash = URL.canParse(url) ? new URL(url).hash : "";
  return hash.startsWith("#/wiki/") ? hash : null;
}
