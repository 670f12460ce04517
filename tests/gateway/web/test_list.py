"""The list of conversations, waiting, another answer, and the words of tasks, in Chromium."""

from __future__ import annotations

from tests.end_to_end.server import Server
from tests.gateway.web.browser import Browser
from tests.gateway.web.server_side import CONVERSATIONS, kept, post, stored
from tests.waiting import eventually


def test_the_last_reply_is_given_again(browser: Browser, served: Server) -> None:
    name = post(served, CONVERSATIONS, title="Again")["id"]
    kept(served, name, "Who are you?", "Nobody.")
    browser.open(f"{served.url}/#/chat/{name}")
    browser.until_text("Nobody.", ".message.assistant")
    browser.click("#talk .again")
    eventually(lambda: len(stored(served, name)) == 3, "there is no second reply")
    assert stored(served, name) == [("user", False), ("assistant", True), ("assistant", False)]
    browser.until_text("incomplete or replaced, and not remembered", ".message.assistant.failed")
    eventually(lambda: len(browser.all(".message.assistant .copy")) == 2, "it is not shown")
    assert browser.text("#talk").count("Answer again") == 1


def test_the_chat_says_what_it_waits_for(browser: Browser, served: Server) -> None:
    browser.open(f"{served.url}/#/chat")
    browser.run(
        "window.seen = '';"
        "new MutationObserver((changes) => changes.forEach(({ addedNodes }) => addedNodes.forEach((node) => {"
        "  window.seen += node.textContent;"
        "}))).observe(document.body, { subtree: true, childList: true })"
    )
    browser.write("#message", "Hello.")
    browser.until_text("Copy", "#talk .message.assistant")
    assert "Waiting for the model…" in browser.run("return window.seen")
    assert "Waiting for the model…" not in browser.text()


def test_the_list_has_days(browser: Browser, served: Server) -> None:
    post(served, CONVERSATIONS, title="A new one")
    browser.open(f"{served.url}/#/chat")
    browser.until_text("A new one", "#conversations")
    assert [day.text for day in browser.all("#conversations .day")] == ["Today"]
    day = browser.call("dom.js", "page.dayOf(Date.now() / 1000 - 86400)")
    assert day == "Yesterday"
    assert "2001" in browser.call("dom.js", "page.dayOf(1e9)")


def test_a_changed_task_is_named_by_its_words(browser: Browser, served: Server) -> None:
    task = post(served, "/v1/tasks", level="task", title="Water the <b>plants</b>")["id"]
    browser.open(f"{served.url}/#/chat")
    assert browser.call("news.js", "page.taskText(values[0])", task) == "Water the <b>plants</b>"
    assert browser.call("news.js", "page.taskText('T-none')") == "T-none"
