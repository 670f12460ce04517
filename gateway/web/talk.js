// One conversation: its log, the message that is being answered, and what became of it.

import { ApiError, call, stream } from "./api.js";
import { h, keepingEnd } from "./dom.js";
import { MessageLog } from "./log.js";
import { LiveReply, pendingElement } from "./message.js";
import { followNews } from "./news.js";
import { problem } from "./problem.js";
import { loadingText, queueText } from "./stages.js";
import { look, setLoading } from "./status.js";

const TITLE_LENGTH = 80;
// A reply that was stopped is stored once the model has let go of it: looked for so often, this far apart.
const LOOKS = 12;
const LOOK_MILLISECONDS = 250;

const EMPTY = "A new conversation. It is kept on the server, and older messages are summarized when they no longer fit.";

const LIST = "/v1/conversations";

/** A conversation on the page; `conversation` is null for one that begins with its first message.
 *  `on.changed(talk)` hears of every change, `on.giveBack(talk, text)` gets a text that the server did not take,
 *  `on.erased(talk)` hears that it is gone from the server. */
export class Talk {
  constructor(conversation, on) {
    this.conversation = conversation;
    this.on = on;
    this.stopping = null; // while a message is being answered
    this.unsent = null; // {id, text} of a message that the server does not have
    this.budget = null;
    this.listening = null;
    this.log = new MessageLog(() => this.path);
    this.end = h("div");
    this.note = h("p", { class: "hint note", role: "status" });
    if (conversation === null) this.end.append(h("p", { class: "hint empty" }, EMPTY));
    this.element = h("div", {}, this.log.element, this.end, this.note);
  }

  get path() {
    return `${LIST}/${encodeURIComponent(this.conversation.id)}`;
  }

  get running() {
    return this.stopping !== null;
  }

  /** Shows what the server has. */
  async load() {
    try {
      await this.log.latest();
      this.end.replaceChildren();
      this.offerReply();
    } catch (error) {
      this.end.replaceChildren(problem(error, () => this.load()));
    }
  }

  /** Listens to the conversation's news while it is on the page. Open streams are few in a browser: hidden tabs have none. */
  listen(wanted) {
    if (!wanted || this.conversation === null) {
      this.listening?.abort();
      this.listening = null;
    } else if (this.listening === null) {
      this.listening = new AbortController();
      const tell = (text) => keepingEnd(() => (this.note.textContent = text));
      followNews(this.path, this.listening.signal, tell, () => this.on.erased(this));
    }
  }

  /** Sends a message. The same text after a failure is the same message, however often it is sent. */
  send(text) {
    const same = this.unsent?.text === text;
    if (this.unsent !== null && !same) this.on.giveBack(this, this.unsent.text);
    return this.post({ id: same ? this.unsent.id : newId(), text });
  }

  stop() {
    this.stopping?.abort();
  }

  async erase() {
    this.stop();
    this.listen(false);
    await call("DELETE", this.path);
  }

  async post(sent) {
    if (this.running) return;
    this.stopping = new AbortController();
    this.end.replaceChildren();
    this.note.textContent = "";
    this.log.list.querySelector(".pending")?.remove();
    const known = this.log.messages.find((message) => message.id === sent.id);
    const turn = { sent, seq: this.log.messages.at(-1)?.seq ?? 0, pending: pendingElement(sent.text), live: new LiveReply() };
    if (known === undefined) this.log.append(turn.pending);
    this.on.changed(this);
    try {
      await this.answer(turn, this.stopping.signal);
    } catch (error) {
      await this.settle(turn, error);
    } finally {
      this.stopping = null;
      setLoading(null);
      this.on.changed(this);
      look();
    }
  }

  async answer(turn, signal) {
    if (this.conversation === null) await this.begin(turn.sent.text, signal);
    const body = { ...turn.sent, stream: true };
    for await (const { event, data } of stream("POST", `${this.path}/messages`, { body, signal })) {
      if (event === "done") return this.done(turn, data);
      this.show(turn, event, data);
    }
    throw new ApiError("The server ended the reply early.");
  }

  async begin(text, signal) {
    const title = text.split("\n", 1)[0].slice(0, TITLE_LENGTH);
    this.conversation = await call("POST", LIST, { body: { title }, signal });
    this.listen(this.element.isConnected);
    this.on.changed(this);
  }

  show(turn, event, data) {
    const { live } = turn;
    if (event === "accepted") {
      this.log.put(data, turn.pending);
      turn.seq = Math.max(turn.seq, data.seq);
      this.log.append(live.element);
    } else if (event === "delta") keepingEnd(() => live.add(data.text));
    else if (event === "held") this.hold(turn, data);
    else if (event === "queued") live.say(queueText(data));
    else if (event === "compacting") live.say(`Compacting ${data.tokens} tokens of older messages first…`);
    else if (event === "loading") live.say(loadingText(data));
    else if (event === "budget") this.tellBudget(data);
    setLoading(event === "loading" ? data.fraction : null);
  }

  hold(turn, { reason }) {
    turn.pending.lastElementChild.textContent = reason === "reply" ? "Waiting for the reply before it…" : "Waiting for the end of a compaction…";
  }

  done(turn, { message, budget, compaction }) {
    this.unsent = null;
    if (message !== null) this.log.put(message, turn.live.element);
    if (budget !== null) this.tellBudget(budget);
    if (compaction === "queued") this.note.textContent = "Older messages are compacted now";
  }

  tellBudget(report) {
    this.budget = report;
    this.on.changed(this);
  }

  /** After a stop or an error: what the server has stored is what counts. */
  async settle(turn, error) {
    const stopped = error.name === "AbortError";
    if (this.conversation !== null && !(await this.reload(turn))) return;
    const stored = this.log.messages.some((message) => message.id === turn.sent.id);
    const again = () => this.post(turn.sent);
    this.unsent = stored ? null : turn.sent;
    if (!stored && !stopped && error.canRetry) {
      turn.pending.lastElementChild.textContent = "Not sent";
      this.log.append(turn.pending);
    } else if (!stored) {
      turn.pending.remove();
      this.on.giveBack(this, turn.sent.text);
    }
    if (!stopped) this.end.replaceChildren(problem(error, again));
    else if (stored) this.offerReply();
    else this.end.replaceChildren(h("p", { class: "remark" }, "Stopped before the message was stored: it is back in the box."));
  }

  /** Fetches the log until the broken reply is in it, if one was begun. False when that failed, which is shown. */
  async reload(turn) {
    const last = () => this.log.messages.at(-1)?.seq ?? 0;
    try {
      for (let looks = 0; looks < LOOKS; looks += 1) {
        if (looks > 0) await new Promise((resolve) => setTimeout(resolve, LOOK_MILLISECONDS));
        await this.log.latest();
        if (turn.live.text === "" || last() > turn.seq) break;
      }
      return true;
    } catch (error) {
      const unknown = h("p", { class: "remark" }, "Whether the message was stored is not known.");
      this.end.replaceChildren(unknown, problem(error, () => this.settle(turn, new ApiError("The connection broke off."))));
      return false;
    }
  }

  /** A message without a reply can get one. In a channel not every line wants one. */
  offerReply() {
    const open = this.log.unanswered;
    if (open === null || this.conversation?.kind === "channel") return;
    const ask = () => this.post({ id: open.id, text: open.text });
    this.end.replaceChildren(
      h("p", { class: "remark" }, "The last message has no complete reply. "),
      h("button", { type: "button", onclick: ask }, "Answer it now"),
    );
  }
}

/** 128 random bits. `crypto.randomUUID` is there for HTTPS and this machine only. */
function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
