// Questions to the wiki: progress, the streamed answer, its sources.

import { ApiError, call, stream } from "./api.js";
import { Composer } from "./composer.js";
import { byId, copyButton, h, outside } from "./dom.js";
import { render } from "./markdown.js";
import { problem } from "./problem.js";
import { replaces, stageText } from "./stages.js";
import { look, setLoading } from "./status.js";
import { ownPage } from "./wiki.js";

let composer;
let stopping = null; // AbortController of the running question
let asked = 0; // makes the ids of sources unique

export function setUpAsk() {
  composer = new Composer(byId("ask").querySelector("form"), { send: ask, stop: () => stopping?.abort() });
}

export function focusAsk() {
  composer.box.focus();
  if (asked === 0) offerExamples();
}

/** Buttons with questions about the wiki at hand, until the first question is asked. */
async function offerExamples() {
  const { questions } = await call("GET", "/ask/examples");
  if (asked > 0 || questions.length === 0) return;
  const buttons = questions.map((text) => h("button", { type: "button", class: "quiet", onclick: () => ask(text) }, text));
  byId("examples").replaceChildren(h("span", { class: "hint" }, "For example:"), ...buttons);
}

async function ask(question) {
  const shown = new Answer(question, () => again(shown));
  byId("examples").replaceChildren();
  byId("answers").prepend(shown.element);
  await run(shown);
}

async function again(shown) {
  if (composer.running) return;
  shown.reset();
  await run(shown);
}

async function run(shown) {
  stopping = new AbortController();
  composer.setRunning(true);
  try {
    await follow(shown, stopping.signal);
  } catch (error) {
    if (error.name === "AbortError") shown.stopped();
    else shown.failed(error);
    // The user can correct the question.
    if (error instanceof ApiError && [400, 413].includes(error.status)) composer.giveBack(shown.question);
  } finally {
    shown.rest();
    setLoading(null);
    composer.setRunning(false);
    look();
  }
}

async function follow(shown, signal) {
  for await (const { event, data } of stream("POST", "/ask", { body: { question: shown.question }, signal })) {
    if (event === "stage") {
      shown.stage(data);
      setLoading(data.stage === "loading" ? data.detail.fraction : null);
    } else if (event === "delta") shown.delta(data.text);
    else if (event === "done") return shown.done(data);
  }
  throw new ApiError("The server ended the answer early.");
}

/** One question with its progress and answer. */
class Answer {
  constructor(question, onAgain) {
    this.question = question;
    this.onAgain = onAgain;
    this.number = ++asked;
    this.element = h("article", { class: "question", "aria-busy": "true" });
    this.reset();
  }

  reset() {
    this.text = "";
    this.last = null;
    this.element.setAttribute("aria-busy", "true");
    this.summary = h("summary", { role: "status" }, "Asking");
    this.stages = h("ol");
    this.details = h("details", { class: "stages", open: true }, this.summary, this.stages);
    this.body = h("div", { class: "text", "aria-live": "polite" });
    this.read = h("progress", { max: "1", hidden: true, "aria-label": "Prompt read" });
    this.end = h("div");
    this.element.replaceChildren(h("h2", {}, this.question), this.details, this.read, this.body, this.end);
  }

  stage(stage) {
    const line = stageText(stage);
    if (replaces(stage, this.last)) this.stages.lastElementChild.textContent = line;
    else this.stages.append(h("li", {}, line));
    this.last = stage;
    this.read.hidden = stage.stage !== "reading";
    if (stage.stage === "reading") this.read.value = stage.detail.done / stage.detail.total;
    this.summary.textContent = line;
  }

  delta(text) {
    this.text += text;
    this.read.hidden = true;
    this.body.replaceChildren(render(this.text));
  }

  done(result) {
    this.text = result.answer;
    const cited = new Set(result.citations.map((source) => source.n));
    this.body.replaceChildren(render(result.answer, (n) => (cited.has(n) ? this.marker(n) : null)));
    const { total } = result.timings;
    const time = total < 0.1 ? "under 0.1 s" : `${total.toFixed(1)} s`;
    const unused = result.skipped.length ? ` · ${result.skipped.length} not used` : "";
    this.summary.textContent = `How it was found · ${result.model} · ${time}${unused}`;
    this.details.open = false;
    this.stages.append(...result.skipped.map((page) => h("li", {}, `Not used: ${page.title} (${page.reason})`)));
    this.details.append(h("p", { class: "hint" }, budgetText(result.budget), ` Request ${result.id}.`));
    const unsourced = result.citations.length === 0;
    this.element.classList.toggle("unsourced", unsourced);
    this.end.append(
      unsourced ? h("p", { class: "remark" }, "No source: none of the pages supports an answer.") : this.sources(result.citations),
      copyButton(() => asText(result)),
    );
  }

  stopped() {
    this.summary.textContent = "Stopped";
    const remark = this.text ? "Stopped: the answer is incomplete, and its sources are unknown." : "Stopped.";
    this.end.append(h("p", { class: "remark" }, remark), h("button", { type: "button", class: "quiet", onclick: this.onAgain }, "Ask again"));
  }

  failed(error) {
    this.summary.textContent = "Not answered";
    if (this.text) this.end.append(h("p", { class: "remark" }, "The answer is incomplete."));
    this.end.append(problem(error, this.onAgain));
  }

  rest() {
    this.element.setAttribute("aria-busy", "false");
    this.read.hidden = true;
  }

  marker(n) {
    return h("a", { class: "marker", href: `#source-${this.number}-${n}`, "aria-label": `Source ${n}` }, `[${n}]`);
  }

  sources(citations) {
    const rows = citations.map((source) =>
      h("li", { id: `source-${this.number}-${source.n}`, tabindex: "-1", value: source.n }, link(source)),
    );
    return h("section", { class: "sources" }, h("h3", {}, "Sources"), h("ol", {}, ...rows));
  }
}

const link = (source) =>
  ownPage(source.url) ? h("a", { href: ownPage(source.url) }, place(source)) : outside(source.url, place(source));
const place = (source) => (source.section ? `${source.title}, ${source.section}` : source.title);

function budgetText(budget) {
  if (!budget.prompt_tokens) return "The model was not asked for this answer.";
  const cached = budget.cached_tokens ? `, ${budget.cached_tokens} of them cached` : "";
  return `${budget.prompt_tokens} of ${budget.prompt_limit} tokens read${cached}; ${budget.answer_tokens} of ${budget.answer_limit} written. Prompt limit: ${budget.reason}.`;
}

function asText(result) {
  const sources = result.citations.map((source) => `[${source.n}] ${place(source)}: ${source.url}`);
  return [result.answer, ...(sources.length ? ["", ...sources] : [])].join("\n");
}
