// Entry point: the header, and the view that the address names: #/ask, #/chat, #/chat/ID, #/code,
// #/code/PROJECT/NAME, #/tasks or #/wiki/TITLE.

import { focusAsk, setUpAsk } from "./ask.js";
import { leave, openTalk, setUpChat } from "./chat.js";
import { byId } from "./dom.js";
import { openGraph, setUpGraph } from "./graph.js";
import { setUpKey } from "./key.js";
import { problem } from "./problem.js";
import { look, setUpStatus, showModel } from "./status.js";
import { leaveTasks, openTasks, setUpTasks } from "./tasks.js";
import { openWikiPage } from "./wiki.js";

function route() {
  const [, title, anchor] = /^#\/wiki\/([^#]+)(?:#(.*))?$/.exec(location.hash) ?? [];
  const [, view, id, name] = /^#\/(ask|chat|code|tasks)(?:\/([^/]+))?(?:\/(.+))?$/.exec(location.hash) ?? [];
  const views = ["ask", "chat", "code", "tasks"];
  const shown = [...views, "wiki"].some((each) => !byId(each).hidden);
  if (shown && /^#[^/]/.test(location.hash)) return; // an anchor, such as a source
  for (const each of views) {
    const current = title === undefined && each === (view ?? "ask");
    byId(each).hidden = !current;
    if (current) byId(`to-${each}`).setAttribute("aria-current", "page");
    else byId(`to-${each}`).removeAttribute("aria-current");
  }
  byId("wiki").hidden = title === undefined;
  leaveTasks();
  if (view === "chat") return openTalk(id === undefined ? null : decoded(id));
  leave();
  if (title !== undefined) openWikiPage(decoded(title), decoded(anchor ?? ""));
  else if (view === "code") openGraph(decoded(id ?? ""), decoded(name ?? ""));
  else if (view === "tasks") openTasks();
  else focusAsk();
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

async function begin() {
  byId("problems").replaceChildren();
  try {
    await showModel();
    await look();
  } catch (error) {
    await look();
    byId("problems").replaceChildren(problem(error, begin));
    return;
  }
  window.addEventListener("hashchange", route);
  route();
}

const strip = document.querySelector(".strip");
new ResizeObserver(() => document.documentElement.style.setProperty("--strip", `${strip.offsetHeight}px`)).observe(strip);
setUpKey();
setUpAsk();
setUpChat();
setUpGraph();
setUpTasks();
setUpStatus();
begin();
