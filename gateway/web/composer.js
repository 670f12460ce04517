// An input box with buttons to send and to stop. Enter sends, Shift+Enter starts a new line, Esc stops.

import { wake } from "./status.js";

/** Drives a form of class `composer`. `send(text)` gets the text, `stop()` ends the running request. */
export class Composer {
  constructor(form, { send, stop }) {
    [this.box, this.sendButton, this.stopButton] = ["textarea", ".send", ".stop"].map((name) => form.querySelector(name));
    this.running = false;
    this.send = send;
    this.stop = stop;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.stopButton.addEventListener("click", () => this.stop());
    this.box.addEventListener("input", () => {
      this.fit();
      wake();
    });
    this.box.addEventListener("keydown", (event) => {
      // During composition (Vietnamese, Chinese, …), Enter belongs to the input method.
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      this.submit();
    });
    document.addEventListener("keydown", (event) => {
      const seen = form.checkVisibility() && document.querySelector("dialog[open]") === null;
      if (event.key === "Escape" && this.running && seen) this.stop();
    });
  }

  submit() {
    const text = this.box.value.trim();
    if (this.running || text === "") return;
    this.box.value = "";
    this.fit();
    this.send(text);
  }

  /** Shows the stop button while a request runs; text written meanwhile stays in the box. */
  setRunning(running) {
    const hadFocus = [this.sendButton, this.stopButton].includes(document.activeElement);
    this.running = running;
    this.sendButton.hidden = running;
    this.stopButton.hidden = !running;
    if (hadFocus) this.box.focus();
  }

  /** Puts back a rejected text, unless the box has a new one. */
  giveBack(text) {
    if (this.box.value !== "") return;
    this.box.value = text;
    this.fit();
  }

  /** Grows the box with its text, within the bounds of the style sheet. */
  fit() {
    this.box.style.height = "auto";
    this.box.style.height = `${this.box.scrollHeight + 2}px`;
  }
}
