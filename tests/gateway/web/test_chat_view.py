"""The page in a real browser, before the real gateway: conversations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from selenium.webdriver.common.keys import Keys

from tests.end_to_end.server import Server
from tests.gateway.web.browser import Browser
from tests.waiting import eventually

HOSTILE = (
    "<img src=x onerror=alert(1)> <script>alert(2)</script> [press](javascript:alert(3)) javascript:alert(4) "
    '"><iframe srcdoc="<script>alert(5)</script>"> ![x](https://evil.example/x.png) <svg/onload=alert(6)>'
)
CONVERSATIONS = "/v1/conversations"


def post(server: Server, path: str, **body: Any) -> dict[str, Any]:
    reply = server.client.post(path, json=body or None)
    reply.raise_for_status()
    return dict(reply.json())


def kept(server: Server, name: str, *lines: str) -> None:
    """Put lines into a conversation, people's and the model's in turns."""
    for number, line in enumerate(lines):
        role = "assistant" if number % 2 else "user"
        post(server, f"{CONVERSATIONS}/{name}/messages", text=line, role=role, reply=False)


def stored(server: Server, name: str) -> list[tuple[str, bool]]:
    """Role and whether it failed, of the messages that the server has."""
    page = server.client.get(f"{CONVERSATIONS}/{name}/messages").json()
    return [(message["role"], message["failed"]) for message in page["data"]]


def name_in(browser: Browser) -> str:
    """The id of the open conversation, from the address."""
    return eventually(
        lambda: str(browser.run("return location.hash")).partition("#/chat/")[2], "it has no address"
    )


def test_a_conversation_goes_on_after_a_reload(browser: Browser, served: Server) -> None:
    browser.open(f"{served.url}/#/chat")
    browser.write("#message", f"My cat{Keys.SHIFT}{Keys.ENTER}{Keys.NULL}is called Mia.")
    browser.until_text("tokens", "#budget")
    browser.until_text("Copy", ".message.assistant")
    name = name_in(browser)
    assert stored(served, name) == [("user", False), ("assistant", False)]
    assert browser.text(".message.user .text") == "My cat\nis called Mia."
    assert (
        browser.one("#talk-title").text
        == browser.one("#conversations [aria-current] .title").text
        == "My cat"
    )

    browser.driver.refresh()
    browser.until_text("is called Mia.", ".message.user")
    browser.write("#message", "What is my cat called?")
    eventually(lambda: len(browser.all(".message.assistant .copy")) == 2, "there is no second reply")
    assert len(stored(served, name)) == 4

    browser.click("#delete-button")
    browser.click("#confirm-dialog button[value=no]")
    assert stored(served, name), "nothing is deleted unasked"
    browser.click("#delete-button")
    browser.click("#confirm-yes")
    eventually(lambda: browser.run("return location.hash") == "#/chat", "the deleted conversation stays open")
    assert served.client.get(f"{CONVERSATIONS}/{name}").status_code == 404
    assert browser.all(f"#conversations a[data-id='{name}']") == []


def test_earlier_messages_come_when_they_are_wanted(browser: Browser, served: Server) -> None:
    name = post(served, CONVERSATIONS, title="A long one")["id"]
    kept(served, name, *(f"Line {number} " + "of a long talk. " * 20 for number in range(40)))
    browser.open(f"{served.url}/#/chat/{name}")
    browser.until_text("Line 39", "#talk")
    assert "Line 9 " not in browser.text("#talk")
    browser.run("window.scrollTo(0, 0)")
    browser.until_text("Line 0 ", "#talk")
    assert [each.split()[1] for each in browser.text(".message .text").splitlines()] == [
        str(n) for n in range(40)
    ]


def test_hostile_texts_stay_texts(browser: Browser, served: Server) -> None:
    name = post(served, CONVERSATIONS, title=HOSTILE[:80])["id"]
    kept(served, name, HOSTILE, f"{HOSTILE}\n\n- {HOSTILE}\n\n```\n{HOSTILE}\n```\n**{HOSTILE}**", HOSTILE)
    browser.open(f"{served.url}/#/chat/{name}")
    browser.until_text("onload=alert(6)", ".message.assistant")
    assert browser.text("#talk").count("javascript:alert(3)") == 6
    assert browser.one("#talk-title").text == HOSTILE[:80]
    assert browser.all("main img, main script, iframe, main svg, a[href^='javascript']") == []
    assert [
        each for each in browser.all("script") if not each.get_attribute("src").startswith(served.url)
    ] == []
    addresses = browser.run("return Array.from(document.querySelectorAll('main a'), each => each.href)")
    assert [address for address in addresses if not address.startswith(served.url)] == []


def test_a_stopped_reply_is_shown_as_it_was_stored(
    browser: Browser, tmp_path: Path, tiny_model: Path
) -> None:
    server = Server(tmp_path / "data", tiny_model, env={"HEARTH_MEMORY__ANSWER_TOKENS": "128"})
    try:
        browser.open(f"{server.url}/#/chat")
        browser.one("#message")
        browser.when_it_shows(".message[aria-busy] .text", click="#chat .stop")
        browser.write("#message", "Tell me a long story.")
        browser.until_text("not remembered", ".message.failed")
        name = name_in(browser)
        assert stored(server, name) == [("user", False), ("assistant", True)]
        assert server.health()["queue"] == {"waiting": 0, "running": 0}
        browser.until_text("no complete reply", "#talk")

        browser.driver.refresh()  # the address names the conversation, and the log is the server's
        browser.until_text("not remembered", ".message.failed")
        browser.click("#talk .remark + button")
        eventually(
            lambda: browser.all(".message.assistant:not(.failed) .copy"), "the message is not answered again"
        )
        roles = [("user", False), ("assistant", True), ("assistant", False)]
        assert stored(server, name) == roles, "it is one message however often it is sent"
        assert len(browser.all(".message")) == 3
    finally:
        server.stop()


def test_compaction_is_seen(browser: Browser, served: Server) -> None:
    name = post(served, CONVERSATIONS, title="To be compacted")["id"]
    kept(served, name, *(f"Ann has {number} goats in village {number}." for number in range(14)))
    browser.open(f"{served.url}/#/chat/{name}")
    browser.until_text("village 13", "#talk")
    browser.run("window.seen = []")
    browser.run(
        "new MutationObserver(() => window.seen.push(document.querySelector('.note').textContent))"
        ".observe(document.querySelector('.note'), { childList: true })"
    )
    made = post(served, f"{CONVERSATIONS}/{name}/compact")
    eventually(
        lambda: any("Compacting" in text for text in browser.run("return window.seen")), "it is not shown"
    )
    assert made["summaries"] > 0
    eventually(
        lambda: any("Compacted: " in text for text in browser.run("return window.seen")), "nor its end"
    )


def test_it_fits_a_phone(browser: Browser, served: Server) -> None:
    name = post(served, CONVERSATIONS, title="W" * 200)["id"]
    kept(served, name, "w" * 500, f"`{'w' * 300}`\n```\n{'w ' * 300}\n```\n{'w' * 500}")
    browser.narrow(360)
    browser.open(f"{served.url}/#/chat/{name}")
    browser.until_text("Copy", ".message.assistant")
    assert browser.run("return document.documentElement.scrollWidth") == 360
    browser.click("#drawer-button")
    browser.one("#conversations a")
    assert browser.run("return document.documentElement.scrollWidth") == 360
    browser.click("#to-ask")
    browser.write("#question", "W" * 300)
    browser.one(".question")
    assert browser.run("return document.documentElement.scrollWidth") == 360
    browser.one(".question[aria-busy=false]")


def test_a_conversation_that_is_not_there(browser: Browser, served: Server) -> None:
    browser.open(f"{served.url}/#/chat/nothing%2F..%2Felse")
    browser.until_text("not_found", ".problem")
    browser.click("#drawer .new")
    browser.one("#message")
