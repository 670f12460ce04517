// One conversation: its log, and the message being answered.

import { ApiError, call, stream } from "./api.js";
import { h, keepingEnd } from "./dom.js";
import { MessageLog } from "./log.js";
import { LiveReply, pendingElement } from "./message.js";
import { followNews } from "./news.js";
import { problem } from "./problem.js";
import { loadingText, queueText, readingText } from "./stages.js";
import { look, setLoading } from "./status.js";

const TITLE_LENGTH = 80;
// A stopped reply is stored with a short delay. Number and interval of the polls for it:
const POLLS = 12;
const POLL_MILLISECONDS = 250;

const EMPTY = "A new conversation. It is kept on the server, and older messages are summarized when they no longer fit.";

const LIST = "/v1/conversations";

/** A conversation on the page; `conversation` is null until its first message is sent.
 *  Callbacks: `on.changed(talk)` after every change, `on.giveBack(talk, text)` for a text that the server did not
 *  store, `on.erased(talk)` after its deletion on the server. */
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

  async load() {
    try {
      await this.log.latest();
      this.end.replaceChildren();
      this.offerReply();
    } catch (error) {
      this.end.replaceChildren(problem(error, () => this.load()));
    }
  }

  /** Follows the conversation's events while it is visible: browsers limit the number of open streams. */
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

  /** Changes fields of the conversation. Throws ApiError. */
  async change(fields) {
    this.conversation = await call("PATCH", this.path, { body: fields });
    this.on.changed(this);
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
      live.say("Waiting for the model…");
      this.log.append(live.element);
    } else if (event === "delta") keepingEnd(() => live.add(data.text));
    else if (event === "held") this.hold(turn, data);
    else if (event === "queued") live.say(queueText(data));
    else if (event === "reading") live.say(readingText(data));
    else if (event === "compacting") live.say(`Compacting ${data.tokens} tokens of older messages first…`);
    else if (event === "loading") live.say(loadingText(data));
    else if (event === "budget") this.showBudget(data);
    setLoading(event === "loading" ? data.fraction : null);
  }

  hold(turn, { reason }) {
    turn.pending.lastElementChild.textContent = reason === "reply" ? "Waiting for the reply before it…" : "Waiting for the end of a compaction…";
  }

  done(turn, { message, accepted, budget, compaction, redacted, finish_reason }) {
    this.unsent = null;
    if (message !== null) this.log.put(message, turn.live.element);
    if (budget !== null) this.showBudget(budget);
    if (finish_reason === "length") this.note.textContent = "The reply ended at its limit of tokens";
    if (compaction === "queued") this.note.textContent = "Compacting older messages";
    if (redacted.length) this.offerKeeping(accepted, redacted);
    else this.offerReply();
  }

  /** Marks the last reply as failed, so that it is not remembered, and asks for another one. */
  async again() {
    const reply = this.log.messages.at(-1);
    const asked = this.log.messages.findLast((message) => message.role === "user");
    try {
      this.log.put(await call("PATCH", `${this.path}/messages/${encodeURIComponent(reply.id)}`, { body: { failed: true } }));
    } catch (error) {
      this.end.replaceChildren(problem(error, () => this.again()));
      return;
    }
    await this.post({ id: asked.id, text: asked.text });
  }

  /** Offers to store a message with the secrets that were taken out of it. */
  offerKeeping(message, redacted) {
    const kinds = redacted.map(({ kind, count }) => `${count} × ${kind}`).join(", ");
    const keep = async () => {
      try {
        this.log.put(await call("POST", `${this.path}/keep`, { body: { message: message.id } }));
        this.end.replaceChildren();
      } catch (error) {
        this.end.replaceChildren(problem(error, keep));
      }
    };
    this.end.replaceChildren(
      h("p", { class: "remark" }, `Taken out before storing: ${kinds}. `),
      h("button", { type: "button", onclick: keep }, "Store it after all"),
    );
  }

  showBudget(report) {
    this.budget = report;
    this.on.changed(this);
  }

  /** After a stop or an error, shows what the server has stored. */
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
    else this.end.replaceChildren(h("p", { class: "remark" }, "Stopped before the message was stored. Its text is back in the box."));
  }

  /** Fetches the log until it has the incomplete reply, if there is one. False after an error, which is shown. */
  async reload(turn) {
    const last = () => this.log.messages.at(-1)?.seq ?? 0;
    try {
      for (let looks = 0; looks < POLLS; looks += 1) {
        if (looks > 0) await new Promise((resolve) => setTimeout(resolve, POLL_MILLISECONDS));
        await this.log.latest();
        if (turn.live.text === "" || last() > turn.seq) break;
      }
      return true;
    } catch (error) {
      const unknown = h("p", { class: "remark" }, "It is unknown whether the message was stored.");
      this.end.replaceChildren(unknown, problem(error, () => this.settle(turn, new ApiError("The connection was lost."))));
      return false;
    }
  }

  /** Offers a reply to an unanswered message, or another one to the last; not in channels, where many lines need none. */
  offerReply() {
    if (this.conversation?.kind === "channel" || this.log.messages.length === 0) return;
    const open = this.log.unanswered;
    if (open === null) {
      this.end.replaceChildren(h("button", { type: "button", class: "quiet again", onclick: () => this.again() }, "Answer again"));
      return;
    }
    const ask = () => this.post({ id: open.id, text: open.text });
    this.end.replaceChildren(
      h("p", { class: "remark" }, "The last message has no complete reply. "),
      h("button", { type: "button", onclick: ask }, "Answer it now"),
    );
  }
}

/** 128 random bits. `crypto.randomUUID` needs HTTPS or localhost. */
function newId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
