"""The page in a real browser, before the real gateway with the built-in model: questions."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from gateway.store.db import Database
from gateway.store.keys import create_key
from gateway.wiki import ingest
from tests.deploy.proxy import NAME, proxy
from tests.end_to_end.server import Server
from tests.gateway.web.browser import Browser
from tests.waiting import eventually

HOSTILE_TITLE = "Quuxlang <img src=x onerror=alert(1)>"


@contextmanager
def halted(server: Server) -> Iterator[None]:
    """The model host stands still inside the block: whatever is asked stays in the middle of it."""
    server.client.post("/admin/host/warm").raise_for_status()
    pid = server.host_pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def host_has(server: Server, requests: int) -> bool:
    """Whether the model host has so many requests that are not at their end."""
    return bool(server.health()["host"]["open_requests"] == requests)


def test_a_question_is_answered_with_its_source(browser: Browser, served: Server) -> None:
    browser.open(served.url)
    assert "demo model" in browser.until_text("hearth pull", "#notice")
    assert browser.one("#model").text == "hearth-demo"
    browser.write("#question", "Who created Befunge?")
    assert "Chris Pressey" in browser.until_text("Chris Pressey", ".question .text")
    browser.one(".sources")
    summary = browser.until_text("How it was found", ".stages summary")
    assert "hearth-demo" in summary
    browser.click(".stages summary")
    assert "Search terms: Befunge" in browser.until_text("Answering from Befunge", ".stages ol")
    [source] = browser.all(".sources li a")
    assert source.get_attribute("href") == "https://esolangs.org/wiki/Befunge"
    assert source.get_attribute("rel") == "noopener noreferrer nofollow"
    browser.click(".marker")
    assert browser.run("return document.querySelector(':target').textContent") == "Befunge"
    assert browser.all(".question"), "the view stays"
    browser.until_text("Ready", "#state")


def test_what_the_wiki_lacks_is_shown_to_have_no_source(browser: Browser, served: Server) -> None:
    browser.open(served.url)
    browser.write("#question", "Who is the mayor of Paris?")
    seen = browser.until_text("No source", ".question.unsourced")
    assert browser.all(".sources") == []
    assert "The wiki does not say" in seen


def test_stop_reaches_the_model(browser: Browser, served: Server) -> None:
    with halted(served):
        before = served.finished_tokens()
        browser.open(served.url)
        browser.write("#question", "Who created Befunge?")
        browser.until_text("Asking", ".stages li")  # as the server tells
        browser.write("#question", "What is Malbolge?")  # waits in the box while something runs
        browser.press(Keys.ESCAPE)
        browser.until_text("Stopped.", ".question")
        assert browser.one("#question").get_property("value") == "What is Malbolge?"
    eventually(lambda: host_has(served, 0), "the model still works for a question that was stopped")
    assert served.finished_tokens() == before, "nothing was generated to its end"
    browser.click(".question button")  # ask again
    browser.until_text("Chris Pressey", ".question .text")
    assert len(browser.all(".question")) == 1


def test_errors_are_shown_with_their_remedy(browser: Browser, served: Server) -> None:
    browser.open(served.url)
    browser.one("#question")
    browser.run("document.querySelector('#question').value = 'long '.repeat(1000)")
    browser.write("#question", "")
    assert "over the limit of 4096" in browser.until_text("request_too_large", ".problem")
    assert browser.all(".problem button") == [], "again, it would be refused again"
    assert len(browser.one("#question").get_property("value")) > 4096, "it can be mended"


def test_a_busy_server_says_when_to_come_back(browser: Browser, served: Server) -> None:
    events = {"Accept": "text/event-stream"}
    with (
        halted(served),
        served.client.stream("POST", "/ask", json={"question": "Who?"}, headers=events) as other,
    ):
        lines = other.iter_lines()  # as long as it is there, the question is asked
        next(lines)
        browser.open(served.url)
        browser.write("#question", "Who created Befunge?")
        button = browser.one(".problem .again")
        assert (button.is_enabled(), button.text.startswith("Try again in ")) == (False, True)
    eventually(lambda: host_has(served, 0), "the other question is still worked on")
    eventually(button.is_enabled, "the time to wait does not pass")
    button.click()
    browser.until_text("Chris Pressey", ".question .text")


def test_a_hostile_page_title_is_text(browser: Browser, served: Server) -> None:
    database = Database(served.data_dir / "hearth.db")
    database.open()
    page = ingest.prepare(HOSTILE_TITLE, 1, "'''Quuxlang''' is a language created by Ada Quux in 2011.")
    database.write_sync(lambda connection: ingest.put(connection, page, "sample"))
    database.close()
    browser.open(served.url)
    browser.write("#question", "Who created Quuxlang?")
    browser.until_text("How it was found", ".stages summary")
    browser.click(".stages summary")
    browser.until_text(f"Reading {HOSTILE_TITLE}", ".stages ol")
    assert browser.all("main img") == []


def test_it_asks_for_a_key_and_forgets_it(browser: Browser, tmp_path: Path, demo_model: str) -> None:
    server = Server(tmp_path / "data", demo_model)
    database = Database(server.data_dir / "hearth.db")
    database.open()
    key = database.write_sync(lambda connection: create_key(connection, "ann", "user"))[1]
    database.close()
    try:
        browser.open(server.url)
        browser.until_text("An API key is needed", "#key-dialog")
        browser.write("#key", "hk_wrong")
        browser.until_text("unknown or revoked", "#key-reason")
        browser.write("#key", f"{key}é")
        browser.until_text("neither blanks nor accents", "#key-reason")
        browser.write("#key", key)
        browser.until_text("demo model", "#notice")
        assert browser.run(
            "return [Object.values(sessionStorage), localStorage.length, document.cookie]"
        ) == [
            [key],
            0,
            "",
        ]
        browser.write("#question", "Who created Befunge?")
        browser.until_text("Chris Pressey", ".question .text")
        browser.click("#key-button")
        browser.until_text("An API key is needed", "#key-dialog")
        assert browser.run("return sessionStorage.length") == 0
        assert "Befunge" not in browser.text()
        browser.press(Keys.ESCAPE)
        browser.until_text("An API key is needed: Authorization", ".problem")
    finally:
        server.stop()


def test_a_server_that_is_gone_is_told(browser: Browser, tmp_path: Path, tiny_model: Path) -> None:
    server = Server(tmp_path / "data", tiny_model)
    browser.open(f"{server.url}/#/chat")
    browser.one("#message")
    server.stop()
    browser.write("#message", "Are you there?")
    browser.until_text("The server cannot be reached", ".problem")
    browser.until_text("No connection", "#state")
    assert "Not sent" in browser.text(".message.pending"), "what was written is not lost"


def test_behind_nginx(browser: Browser, served: Server, tmp_path_factory: pytest.TempPathFactory) -> None:
    with proxy(tmp_path_factory.mktemp("nginx"), served.url) as front:
        browser.open(f"https://{NAME}:{front.secure}/")
        browser.write("#question", "Who created Befunge?")
        browser.until_text("Chris Pressey", ".question .text")
        browser.until_text("Ready", "#state")
        # A page is a dozen files: reloading it in a hurry is no flood.
        with front.client("127.0.0.31") as client:
            names = [path.name for path in Path("gateway/web").resolve().iterdir()]
            replies = [client.get(f"/assets/{name}") for _ in range(4) for name in names]
            assert {reply.status_code for reply in replies} == {200}
            assert client.post("/").status_code == 405
            assert client.get("/").headers["strict-transport-security"]
