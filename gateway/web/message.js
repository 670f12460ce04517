// Messages of a conversation: stored, pending, and streaming.

import { copyButton, h, moment } from "./dom.js";
import { render } from "./markdown.js";

/** The element of a stored message. User text is shown verbatim, the model's as Markdown. */
export function messageElement(message) {
  const mine = message.role === "user";
  const text = mine ? h("div", { class: "text plain" }, message.text) : h("div", { class: "text" }, render(message.text));
  return h(
    "article",
    { class: `message ${message.role}${message.failed ? " failed" : ""}`, "data-seq": message.seq },
    h("h3", { class: "hidden" }, message.speaker || (mine ? "You" : "The model")),
    message.speaker ? h("p", { class: "speaker", "aria-hidden": "true" }, message.speaker) : null,
    text,
    h("p", { class: "hint" }, moment(message.created_at), ...remarks(message).map((remark) => ` · ${remark}`), mine ? null : copyButton(() => message.text)),
  );
}

function remarks(message) {
  const count = message.redactions;
  return [
    message.failed ? "incomplete or replaced, and not remembered" : null,
    count ? `${count} ${count === 1 ? "secret" : "secrets"} removed` : null,
  ].filter(Boolean);
}

export const pendingElement = (text) =>
  h("article", { class: "message user pending" }, h("h3", { class: "hidden" }, "You"), h("div", { class: "text plain" }, text), h("p", { class: "hint" }, "Sending…"));

/** A streaming reply: `say` shows its status, `add` appends text. */
export class LiveReply {
  constructor() {
    this.text = "";
    this.status = h("p", { class: "hint", role: "status" });
    this.body = h("div", { class: "text" });
    this.element = h("article", { class: "message assistant", "aria-busy": "true" }, h("h3", { class: "hidden" }, "The model"), this.body, this.status);
  }

  say(text) {
    this.status.textContent = text;
  }

  add(text) {
    this.text += text;
    this.body.replaceChildren(render(this.text));
    this.status.textContent = "";
  }
}
