// Conversations: the list, the open one, and its input box.

import { call } from "./api.js";
import { Composer } from "./composer.js";
import { byId, h } from "./dom.js";
import { ConversationList, titleOf } from "./list.js";
import { problem } from "./problem.js";
import { setUpSearch } from "./search.js";
import { Talk } from "./talk.js";

let composer;
let list;
let shown = null; // the talk on the page
const running = new Map(); // talks by id that outlive their view: being answered, or with an unsent message
let opening = 0;

const on = { changed, giveBack, erased };

export function setUpChat() {
  list = new ConversationList();
  composer = new Composer(byId("chat").querySelector("form"), { send: (text) => shown?.send(text), stop: () => shown?.stop() });
  byId("settings-button").addEventListener("click", settings);
  byId("delete-button").addEventListener("click", erase);
  byId("drawer-button").addEventListener("click", () => openDrawer(!byId("drawer").classList.contains("open")));
  document.addEventListener("visibilitychange", () => shown?.listen(document.visibilityState === "visible"));
  setUpSearch();
}

/** Shows the conversation with this id, or a new one for null. */
export async function openTalk(id) {
  openDrawer(false);
  if (list.current === undefined) list.fetch();
  list.mark(id);
  if (shown !== null && shown.conversation?.id === id) return; // a new one that was just stored
  const turn = ++opening;
  leave();
  if (id === null) return show(new Talk(null, on));
  if (running.has(id)) return show(running.get(id));
  try {
    const talk = new Talk(await call("GET", `/v1/conversations/${encodeURIComponent(id)}`), on);
    if (turn !== opening) return; // another one was opened meanwhile
    show(talk);
    await talk.load();
    window.scrollTo(0, document.documentElement.scrollHeight);
  } catch (error) {
    if (turn === opening) byId("talk").replaceChildren(problem(error, () => openTalk(id)));
  }
}

/** Stops listening to the open conversation while another view is shown. */
export function leave() {
  shown?.listen(false);
  shown = null;
  byId("talk").replaceChildren();
  byId("talk-head").hidden = true;
  byId("chat").querySelector("form").hidden = true;
}

function show(talk) {
  shown = talk;
  byId("talk").replaceChildren(talk.element);
  byId("chat").querySelector("form").hidden = false;
  talk.listen(true);
  draw();
  if (!talk.running && talk.unsent !== null) composer.giveBack(talk.unsent.text);
  window.scrollTo(0, document.documentElement.scrollHeight);
  composer.box.focus({ preventScroll: true });
}

/** Updates header, input box and budget for the open conversation. */
function draw() {
  const { conversation, budget } = shown;
  byId("talk-head").hidden = conversation === null;
  const title = conversation === null ? "" : titleOf(conversation);
  Object.assign(byId("talk-title"), { textContent: title, title }); // long titles are clipped
  composer.setRunning(shown.running);
  byId("budget").replaceChildren(...(budget === null ? [] : budgetNodes(budget)));
}

function budgetNodes({ total, limit, ceiling, left_out: leftOut }) {
  const noRoom = leftOut.filter((each) => each.why.startsWith("no room"));
  const text = `${total} of ${limit} tokens`;
  const without = h("span", { title: noRoom.map(({ what, why }) => `${what}: ${why}`).join("\n") }, `Left out: ${noRoom.map(({ what }) => what).join(", ")}`);
  const title = `The next prompt; above ${ceiling} tokens, older messages are compacted`;
  return [h("meter", { min: 0, max: limit, high: ceiling, value: total, title, "aria-label": "Prompt" }), ` ${text}`, ...(noRoom.length ? [". ", without] : [])];
}

function changed(talk) {
  const { conversation } = talk;
  if (conversation !== null) {
    if (talk.running && !running.has(conversation.id)) list.first({ ...conversation, updated_at: Date.now() / 1000 });
    if (talk.running || talk.unsent !== null) running.set(conversation.id, talk);
    else running.delete(conversation.id);
  }
  if (talk !== shown) return;
  draw();
  const address = conversation === null ? "#/chat" : `#/chat/${encodeURIComponent(conversation.id)}`;
  if (location.hash !== address) {
    history.replaceState(null, "", address);
    list.mark(conversation?.id ?? null);
  }
}

function giveBack(talk, text) {
  if (talk === shown) composer.giveBack(text);
}

function erased(talk) {
  list.remove(talk.conversation.id);
  if (talk === shown) location.hash = "#/chat";
}

async function erase() {
  const talk = shown;
  if (!(await confirmErase(titleOf(talk.conversation)))) return;
  try {
    await talk.erase();
    erased(talk);
  } catch (error) {
    talk.end.replaceChildren(problem(error, erase));
  }
}

const SETTINGS = ["title", "policy", "kind", "instructions", "assistant", "participants", "time_zone", "project"];

async function settings() {
  const talk = shown;
  const before = { ...talk.conversation, participants: talk.conversation.participants.join(", ") };
  try {
    const projects = (await call("GET", "/v1/projects")).data;
    const bound = before.project;
    if (bound && !projects.some((each) => each.id === bound)) projects.push({ id: bound, name: "(no longer registered)" });
    const choices = [{ id: "", name: "None" }, ...projects].map((each) => h("option", { value: each.id }, each.name));
    byId("settings-project").replaceChildren(...choices);
    for (const name of SETTINGS) byId(`settings-${name}`).value = before[name] ?? "";
    if (!(await answered(byId("settings-dialog")))) return;
    const fields = SETTINGS.map((name) => [name, byId(`settings-${name}`).value.trim()]);
    const changed = Object.fromEntries(fields.filter(([name, value]) => value !== (before[name] ?? "")));
    if ("participants" in changed) changed.participants = changed.participants.split(",").map((each) => each.trim()).filter(Boolean);
    if ("project" in changed) changed.project ||= null;
    await talk.change(changed);
    list.replace(talk.conversation);
  } catch (error) {
    talk.end.replaceChildren(problem(error, settings));
  }
}

async function confirmErase(title) {
  byId("confirm-title").textContent = "Delete this conversation?";
  byId("confirm-text").textContent = `“${title}” is deleted with its messages and everything learned from it. This cannot be undone.`;
  return answered(byId("confirm-dialog"));
}

/** Shows a dialog and waits for its end; whether its answer is yes. */
async function answered(dialog) {
  dialog.returnValue = "";
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener("close", resolve, { once: true }));
  return dialog.returnValue === "yes";
}

function openDrawer(open) {
  byId("drawer").classList.toggle("open", open);
  byId("drawer-button").setAttribute("aria-expanded", String(open));
}
