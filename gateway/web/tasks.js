// The tasks view: the list of the day with the progress of runs, BREAKPOINTs as forms, and notices as they come.

import { call, stream } from "./api.js";
import { byId, h, moment } from "./dom.js";
import { problem } from "./problem.js";

const RECONNECT_SECONDS = 5;
const MARKS = { open: "○", doing: "▸", running: "▸", waiting: "?", paused: "‖", done: "✓", cancelled: "–" };
const MOVES = { running: ["pause", "cancel"], waiting: ["cancel"], paused: ["resume", "cancel"] };

let listening = null;
const cards = new Map(); // by the task's id: {element, at, form, stop, edit}

export function setUpTasks() {
  byId("task-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const title = byId("task-words").value.trim();
    if (title) start(title);
  });
}

/** Shows the list, and follows it until {@link leaveTasks}. */
export async function openTasks() {
  leaveTasks();
  const following = (listening = new AbortController());
  while (!following.signal.aborted) {
    try {
      for await (const { event, data } of stream("GET", "/v1/notices", { signal: following.signal })) {
        if (event === "ready") await load(); // from now on every change comes
        else if (event === "notice") tell(data);
        else show(data);
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      byId("task-problems").replaceChildren(problem(error, openTasks));
      if (!error.canRetry) return;
    }
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_SECONDS * 1000));
  }
}

export function leaveTasks() {
  listening?.abort();
  listening = null;
}

async function load() {
  const [tasks, runs] = await Promise.all([every("/v1/tasks?day=today&limit=200"), call("GET", "/v1/runs?limit=100")]);
  byId("task-problems").replaceChildren();
  const newest = new Map();
  for (const run of runs.data) if (!newest.has(run.task)) newest.set(run.task, run);
  const tops = tasks.filter(({ level }) => level !== "checklist");
  const others = [...newest.values()].filter((run) => run.state in MOVES && !tops.some(({ id }) => id === run.task));
  const there = new Set([...others.map(({ task }) => task), ...tops.map(({ id }) => id)]);
  for (const [id, { element }] of [...cards].filter(([id]) => !there.has(id))) {
    element.remove();
    cards.delete(id);
  }
  others.forEach(show); // cards that are there stay, with what is typed into their forms
  for (const task of tops) {
    if (newest.has(task.id)) show(newest.get(task.id));
    else plain(task);
  }
  byId("task-none").hidden = cards.size > 0;
  await showApprovals();
}

/** What was approved with `always`, each with a button that revokes it. */
async function showApprovals() {
  const rows = (await call("GET", "/v1/approvals")).data.map(({ id, calls }) => {
    const revoke = () => acting(byId("task-problems"), async () => {
      await call("DELETE", `/v1/approvals/${id}`);
      await showApprovals();
    });
    return h("li", {}, `${calls} `, h("button", { type: "button", class: "quiet", onclick: revoke }, "Revoke"));
  });
  byId("approvals").hidden = rows.length === 0;
  byId("approval-list").replaceChildren(...rows);
}

async function every(path) {
  const found = [];
  for (let next = ""; next !== null; ) {
    const page = await call("GET", path + (next && `&before=${encodeURIComponent(next)}`));
    found.push(...page.data);
    next = page.next;
  }
  return found;
}

async function start(title) {
  await acting(byId("task-problems"), async () => {
    const level = byId("task-objective").checked ? "objective" : "task";
    const { id } = await call("POST", "/v1/tasks", { body: { title, level, archetype: "model" } });
    try {
      show(await call("POST", path(id, "run"), { body: {} }));
    } catch (error) {
      await call("DELETE", `/v1/tasks/${encodeURIComponent(id)}`); // what cannot run leaves nothing
      throw error;
    }
    byId("task-words").value = "";
    byId("task-objective").checked = false;
  });
}

const path = (id, what) => `/v1/tasks/${encodeURIComponent(id)}/${what}`;

/** Runs `work`, with buttons off meanwhile, and shows its error in `box`. */
async function acting(box, work) {
  const buttons = [...byId("tasks").querySelectorAll("button")];
  for (const each of buttons) each.disabled = true;
  try {
    box.replaceChildren();
    await work();
  } catch (error) {
    box.replaceChildren(problem(error));
  } finally {
    for (const each of buttons) each.disabled = false;
  }
}

function card(id) {
  if (!cards.has(id)) {
    const made = { element: h("li", { class: "task", "data-task": id }), at: 0, form: null, stop: null, edit: null };
    cards.set(id, made);
    byId("task-list").prepend(made.element);
    byId("task-none").hidden = true;
  }
  return cards.get(id);
}

const head = (id, title, state, note) =>
  h("p", {}, h("span", { class: "mark", title: state }, MARKS[state]), ` ${title} `, h("span", { class: "hint" }, `${id} · ${note}`));

/** A task without a run. */
function plain({ id, title, state, archetype, level }) {
  const runs = level === "objective" || archetype !== "user";
  const box = h("div");
  const body = archetype === "user" ? { archetype: "model" } : {};
  const act = () => acting(box, async () => show(await call("POST", path(id, "run"), { body })));
  const button = runs ? h("button", { type: "button", class: "quiet", onclick: act }, "Run") : null;
  card(id).element.replaceChildren(head(id, title, state, archetype), box, ...(button ? [button] : []));
}

/** A task with its newest run. */
function show(run) {
  const made = card(run.task);
  if (run.updated_at < made.at) return; // a reply that was overtaken by an event
  made.at = run.updated_at;
  const done = run.steps.filter(({ state }) => state === "done").length;
  const box = h("div");
  const move = (what, body) => acting(box, async () => show(await call("POST", path(run.task, what), body && { body })));
  const steps = run.steps.map(({ title, state, attempts, outcome, result }, index) => {
    const ended = run.state !== "running" && (attempts || state === "done" || state === "cancelled");
    const again = h("button", { type: "button", class: "quiet", "aria-label": `Retry step ${index + 1}`, onclick: () => move("retry", { step: index + 1 }) }, "Retry");
    return h("li", {}, h("span", { class: "mark", title: state }, MARKS[state]), ` ${title} `, ...(ended ? [again] : []), ...(result ? [h("div", { class: "hint result" }, outcome === "failed" ? `failed: ${result}` : result)] : []));
  });
  const moves = (MOVES[run.state] ?? []).map((what) => h("button", { type: "button", class: "quiet", onclick: () => move(what) }, what[0].toUpperCase() + what.slice(1)));
  const stop = run.breakpoint && `${run.breakpoint.id} ${run.breakpoint.expired}`;
  if (made.stop !== stop) {
    made.stop = stop;
    made.form = run.breakpoint && form(run);
  }
  made.run = run;
  made.edit ??= editor(made);
  const parts = [
    head(run.task, run.title, run.state, `${done} of ${run.steps.length} steps`),
    run.steps.length ? h("progress", { max: run.steps.length, value: done, "aria-label": "Progress" }) : null,
    h("ol", {}, ...steps), made.form, run.state in MOVES && run.task.startsWith("T-") ? made.edit : null, box, h("p", { class: "row" }, ...moves),
  ];
  made.element.replaceChildren(...parts.filter((each) => each !== null));
}

const linesOf = (area) => area.value.split("\n").filter((line) => line.trim());

/** The steps of a card's run that are not done, to be replaced by others. */
function editor(made) {
  const box = h("div");
  const area = h("textarea", { rows: 3, "aria-label": "Steps in place of those that are not done", placeholder: "One step a line" });
  const rest = () => made.run.steps.filter(({ state }) => state !== "done").map(({ line }) => line);
  const element = h("details", { ontoggle: () => { if (element.open) area.value = rest().join("\n"); } }, h("summary", {}, "Change the rest"), area,
    h("button", { type: "button", onclick: () => linesOf(area).length && acting(box, async () => {
      show(await call("POST", path(made.run.task, "edit"), { body: { steps: linesOf(area) } }));
      element.open = false;
    }) }, "Change"), box);
  return element;
}

/** A BREAKPOINT as a form: a button a choice, a box for a text or for steps. */
function form({ task, steps, breakpoint }) {
  const { id, question, schema, expired } = breakpoint;
  const box = h("div");
  const send = (answer) =>
    acting(box, async () => {
      try {
        show(await call("POST", path(task, "answer"), { body: { answer, breakpoint: id } }));
        if (answer === "always") await showApprovals();
      } catch (error) {
        if (error.status === 409) show(await call("GET", path(task, "run"))); // answered elsewhere, or expired
        byId("task-problems").replaceChildren(problem(error));
      }
    });
  const label = `breakpoint-${id}`;
  const fields = (schema.anyOf ?? [schema]).flatMap((each) => {
    if (each.enum) return each.enum.map((choice) => h("button", { type: "button", onclick: () => send(choice) }, choice));
    const lines = each.type === "array";
    const area = h("textarea", { "aria-labelledby": label, rows: lines ? 3 : 2, maxlength: each.maxLength, placeholder: lines ? "One step a line" : "Your answer" });
    if (breakpoint.kind === "confirm") area.value = steps.map(({ line }) => line).join("\n");
    const value = () => (lines ? linesOf(area) : area.value.trim());
    return [area, h("button", { type: "button", onclick: () => value().length && send(value()) }, lines ? "Use these steps" : "Answer")];
  });
  const again = h("button", { type: "button", onclick: () => acting(box, async () => show(await call("POST", path(task, "resume")))) }, "Ask again");
  return h("form", { class: "breakpoint", onsubmit: (event) => event.preventDefault() },
    h("p", { id: label, class: "question-text" }, question),
    ...(expired ? [h("p", { class: "hint" }, "The time to answer is over."), again] : [h("div", { class: "row" }, ...fields)]), box);
}

function tell({ task, text, created_at: at }) {
  byId("task-notices").prepend(h("li", {}, h("span", { class: "hint" }, moment(at), ` ${task} `), text));
}
