// An error on the page: its message, code and request id, and a button to retry.

import { sentence } from "./api.js";
import { h } from "./dom.js";

/** Shows an error; a button calls `again`, not before the server's retry time. */
export function problem(error, again = null) {
  const details = [error.code, error.requestId && `request ${error.requestId}`].filter(Boolean).join(" · ");
  return h(
    "div",
    { class: "problem", role: "alert" },
    h("p", {}, sentence(error.message)),
    details ? h("p", { class: "hint" }, details) : null,
    again !== null && (error.canRetry || error.status === 401) ? retryButton(error.retryAfter ?? 0, again) : null,
  );
}

function retryButton(seconds, again) {
  const button = h("button", { type: "button", class: "again" });
  const until = Date.now() + seconds * 1000;
  const show = () => {
    const left = Math.ceil((until - Date.now()) / 1000);
    button.disabled = left > 0;
    button.textContent = left > 0 ? `Try again in ${left} s` : "Try again";
    if (left <= 0 || !button.isConnected) clearInterval(timer);
  };
  const timer = setInterval(show, 250);
  button.addEventListener("click", again, { once: true });
  // The first tick comes after the button is on the page.
  button.textContent = seconds > 0 ? `Try again in ${seconds} s` : "Try again";
  button.disabled = seconds > 0;
  return button;
}
