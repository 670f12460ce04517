// The messages of a conversation; earlier ones are fetched on demand.

import { call } from "./api.js";
import { h, keepingEnd } from "./dom.js";
import { messageElement } from "./message.js";
import { problem } from "./problem.js";

const PAGE = 30;

/** A conversation's log; `path()` returns its path in the API. */
export class MessageLog {
  constructor(path) {
    this.path = path;
    this.messages = [];
    this.next = null; // cursor of the page before the first message here
    this.fetching = false;
    this.earlier = h("button", { type: "button", class: "quiet earlier", hidden: true, onclick: () => this.more() }, "Earlier messages");
    this.problems = h("div");
    this.list = h("div", { role: "log", "aria-label": "Messages" });
    this.element = h("div", {}, this.earlier, this.problems, this.list);
    new IntersectionObserver((seen) => seen.at(-1).isIntersecting && this.more()).observe(this.earlier);
  }

  /** Replaces everything by the server's newest messages. Throws ApiError. */
  async latest() {
    const page = await call("GET", `${this.path()}/messages?limit=${PAGE}`);
    this.messages = page.data;
    this.next = page.next;
    this.list.replaceChildren(...page.data.map(messageElement));
    this.changed();
  }

  /** Adds the page before the first message without moving the text in view. */
  async more() {
    if (this.fetching || this.next === null) return;
    this.fetching = true;
    try {
      const page = await call("GET", `${this.path()}/messages?limit=${PAGE}&before=${this.next}`);
      this.messages.unshift(...page.data);
      this.next = page.next;
      const view = document.documentElement;
      const below = view.scrollHeight - view.scrollTop;
      this.list.prepend(...page.data.map(messageElement));
      this.changed();
      view.scrollTop = view.scrollHeight - below;
      this.problems.replaceChildren();
    } catch (error) {
      this.problems.replaceChildren(problem(error, () => this.more()));
    } finally {
      this.fetching = false;
    }
  }

  /** Shows a stored message: updates the one with its number, or replaces `instead`, or appends. */
  put(message, instead = null) {
    const known = this.messages.findIndex((each) => each.seq === message.seq);
    const element = messageElement(message);
    keepingEnd(() => {
      if (known >= 0) {
        this.messages[known] = message;
        instead?.remove();
        this.list.querySelector(`[data-seq="${message.seq}"]`).replaceWith(element);
      } else {
        this.messages.push(message);
        if (instead?.isConnected) instead.replaceWith(element);
        else this.list.append(element);
      }
    });
  }

  append(element) {
    keepingEnd(() => this.list.append(element));
  }

  /** The last user message if it has no complete reply, else null. */
  get unanswered() {
    const last = this.messages.at(-1);
    if (last === undefined || (last.role === "assistant" && !last.failed)) return null;
    return this.messages.findLast((message) => message.role === "user") ?? null;
  }

  changed() {
    this.earlier.hidden = this.next === null;
    this.list.querySelector(".boundary")?.remove();
    const last = this.messages.findLast((message) => message.summarized);
    if (last === undefined) return;
    const line = h("p", { class: "boundary hint" }, "The messages above reach the model as a summary.");
    this.list.querySelector(`[data-seq="${last.seq}"]`).after(line);
  }
}
