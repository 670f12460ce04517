// The list of conversations, most recently used first.

import { call } from "./api.js";
import { byId, dayOf, h, moment } from "./dom.js";
import { problem } from "./problem.js";

const PAGE = 30;

export const titleOf = (conversation) =>
  conversation.title || `Conversation of ${new Date(conversation.created_at * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })}`;

export class ConversationList {
  constructor() {
    this.rows = byId("conversations");
    this.button = byId("more-conversations");
    this.next = null;
    this.button.addEventListener("click", () => this.fetch(true));
  }

  /** Fetches the first page again, or the next one. Shows errors itself. */
  async fetch(further = false) {
    try {
      const before = further ? `&before=${encodeURIComponent(this.next)}` : "";
      const page = await call("GET", `/v1/conversations?limit=${PAGE}${before}`);
      if (!further) this.rows.replaceChildren();
      this.rows.append(...page.data.map((conversation) => this.row(conversation)));
      this.days();
      this.next = page.next;
      this.button.hidden = page.next === null;
      this.mark(this.current);
      byId("list-problems").replaceChildren();
    } catch (error) {
      byId("list-problems").replaceChildren(problem(error, () => this.fetch(further)));
    }
  }

  /** Marks the open conversation. */
  mark(id) {
    this.current = id;
    for (const link of this.rows.querySelectorAll("a")) {
      if (link.dataset.id === id) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  /** Moves a conversation to the top. */
  first(conversation) {
    this.remove(conversation.id);
    this.rows.prepend(this.row(conversation));
    this.days();
    this.mark(this.current);
  }

  /** Shows the changed title of a conversation where it stands. */
  replace(conversation) {
    this.rows.querySelector(`a[data-id="${CSS.escape(conversation.id)}"]`)?.parentElement.replaceWith(this.row(conversation));
    this.mark(this.current);
  }

  remove(id) {
    this.rows.querySelector(`a[data-id="${CSS.escape(id)}"]`)?.parentElement.remove();
    this.days();
  }

  /** Puts each day's name above its conversations. */
  days() {
    for (const heading of this.rows.querySelectorAll(".day")) heading.remove();
    let day = null;
    for (const row of [...this.rows.children]) {
      if (row.dataset.day !== day) row.before(h("li", { class: "day hint" }, row.dataset.day));
      day = row.dataset.day;
    }
  }

  row(conversation) {
    const { id, kind } = conversation;
    const name = h("span", { class: "title" }, titleOf(conversation));
    const when = h("span", { class: "hint" }, kind === "chat" ? null : `${kind} · `, moment(conversation.updated_at));
    return h("li", { "data-day": dayOf(conversation.updated_at) }, h("a", { href: `#/chat/${encodeURIComponent(id)}`, "data-id": id }, name, when));
  }
}
