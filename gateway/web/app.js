// Entry point: the header, and the view that the address names: #/ask, #/chat or #/chat/ID.

import { focusAsk, setUpAsk } from "./ask.js";
import { leave, openTalk, setUpChat } from "./chat.js";
import { byId } from "./dom.js";
import { setUpKey } from "./key.js";
import { problem } from "./problem.js";
import { look, setUpStatus, showModel } from "./status.js";

function route() {
  const [, view, id] = /^#\/(ask|chat)(?:\/(.+))?$/.exec(location.hash) ?? [];
  if (view === undefined && location.hash.length > 1) return; // an anchor, such as a source
  const chat = view === "chat";
  byId("ask").hidden = chat;
  byId("chat").hidden = !chat;
  for (const [name, current] of [["to-ask", !chat], ["to-chat", chat]]) {
    if (current) byId(name).setAttribute("aria-current", "page");
    else byId(name).removeAttribute("aria-current");
  }
  if (chat) openTalk(id === undefined ? null : decoded(id));
  else {
    leave();
    focusAsk();
  }
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
setUpStatus();
begin();
