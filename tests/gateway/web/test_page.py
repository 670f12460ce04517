"""The page in a real browser, before the real gateway with the built-in model and the sample wiki."""

from __future__ import annotations

from pathlib import Path

import pytest
from selenium.webdriver.common.keys import Keys

from gateway.base.resources import web_page
from tests.deploy.proxy import NAME, proxy
from tests.end_to_end.server import Server
from tests.gateway.web.browser import Browser
from tests.gateway.web.server_side import (
    CONVERSATIONS,
    add_page,
    halted,
    host_has,
    kept,
    last_question,
    new_key,
    post,
    stored,
)
from tests.waiting import eventually

HOSTILE_TITLE = "Quuxlang <img src=x onerror=alert(1)>"
HOSTILE = (
    "<img src=x onerror=alert(1)> <script>alert(2)</script> [press](javascript:alert(3)) javascript:alert(4) "
    '"><iframe srcdoc="<script>alert(5)</script>"> ![x](https://evil.example/x.png) <svg/onload=alert(6)>'
)


def test_a_question_is_answered_with_its_source(browser: Browser, served: Server) -> None:
    browser.open(served.url)
    assert "demo model" in browser.until_text("hearth pull", "#notice")
    assert browser.one("#model").text == "hearth-demo"
    browser.write("#question", "Who created Befunge?")
    assert "Chris Pressey" in browser.until_text("Chris Pressey", ".question .text")
    browser.one(".sources")
    assert "hearth-demo" in browser.until_text(" not used", ".stages summary")
    browser.click(".stages summary")
    browser.until_text("Not used: search terms of the model (", ".stages ol")
    assert "Search terms: those of the question" in browser.until_text("Answering from Befunge", ".stages ol")
    browser.until_text("The model was not asked for this answer.", ".stages .hint")
    [source] = browser.all(".sources li a")
    assert source.get_attribute("href") == "https://esolangs.org/wiki/Befunge"
    assert source.get_attribute("rel") == "noopener noreferrer nofollow"
    browser.click(".marker")
    assert browser.run("return document.querySelector(':target').textContent") == "Befunge"
    assert browser.all(".question"), "the view stays"
    browser.until_text("Ready", "#state")


def test_the_wiki_offers_questions(browser: Browser, served: Server) -> None:
    browser.open(served.url)
    first = browser.one("#examples button").text
    assert len(browser.all("#examples button")) == 4
    browser.click("#examples button")
    assert browser.one(".question h2").text == first
    assert browser.all("#examples button") == []
    browser.until_text("How it was found", ".stages summary")


def test_the_chat_fits_the_window_and_its_state_stays_in_view(browser: Browser, served: Server) -> None:
    browser.open(f"{served.url}/#/chat")
    browser.until_text("A new conversation", "#talk")
    high, window = browser.run("return [document.documentElement.scrollHeight, window.innerHeight]")
    assert high <= window


def test_the_model_is_loaded_while_somebody_writes(browser: Browser, served: Server) -> None:
    served.client.post("/admin/host/unload").raise_for_status()
    browser.open(served.url)
    browser.until_text("Asleep", "#state")
    assert served.host_pid() is None, "looking does not wake it"
    browser.write("#question", "W", enter=False)
    browser.until_text("Ready", "#state")
    assert served.host_pid() is not None


def test_what_the_wiki_lacks_is_shown_to_have_no_source(browser: Browser, served: Server) -> None:
    browser.open(served.url)
    browser.write("#question", "Who is the mayor of Paris?")
    seen = browser.until_text("No source", ".question.unsourced")
    assert browser.all(".sources") == []
    assert "The wiki does not say" in seen


def test_stop_reaches_the_model(browser: Browser, served: Server) -> None:
    with halted(served):
        browser.open(served.url)
        browser.write("#question", "Who created Befunge?")
        browser.until_text("Asking", ".stages li")  # as the server tells
        browser.write("#question", "What is Malbolge?")  # waits in the box while something runs
        browser.press(Keys.ESCAPE)
        browser.until_text("Stopped.", ".question")
        assert browser.one("#question").get_property("value") == "What is Malbolge?"
    eventually(lambda: host_has(served, 0), "the model still works for a question that was stopped")
    eventually(lambda: last_question(served)[0] == 499, "the record does not say that it was stopped")
    assert not last_question(served)[1] & {"stop", "length"}, "something was generated to its end"
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
    browser.run("const now = Date.now; Date.now = () => now() + 60_000")  # a minute passes
    eventually(button.is_enabled, "the time to wait does not pass")
    button.click()
    browser.until_text("Chris Pressey", ".question .text")


def test_a_hostile_page_title_is_text(browser: Browser, served: Server) -> None:
    add_page(served, HOSTILE_TITLE, "'''Quuxlang''' is a language created by Ada Quux in 2011.")
    browser.open(served.url)
    browser.write("#question", "Who created Quuxlang?")
    browser.until_text("How it was found", ".stages summary")
    browser.click(".stages summary")
    browser.until_text(f"Reading {HOSTILE_TITLE}", ".stages ol")
    assert browser.all("main img") == []


def test_it_asks_for_a_key_and_forgets_it(browser: Browser, tmp_path: Path, demo_model: str) -> None:
    server = Server(tmp_path / "data", demo_model)
    key = new_key(server)
    try:
        browser.open(server.url)
        browser.until_text("An API key is needed", "#key-dialog[open]")
        browser.write("#key", "hk_wrong")
        browser.until_text("unknown or revoked", "#key-reason")
        browser.write("#key", f"{key}é")
        browser.until_text("neither spaces nor accented letters", "#key-reason")
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
        browser.until_text("An API key is needed", "#key-dialog[open]")
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
            names = [path.name for path in web_page().iterdir()]
            replies = [client.get(f"/assets/{name}") for _ in range(4) for name in names]
            assert {reply.status_code for reply in replies} == {200}
            assert client.post("/").status_code == 405
            assert client.get("/").headers["strict-transport-security"]


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


def test_a_conversation_is_renamed_and_its_policy_changed(browser: Browser, served: Server) -> None:
    name = post(served, CONVERSATIONS, title="Trains")["id"]
    browser.open(f"{served.url}/#/chat/{name}")
    browser.until_text("Trains", "#talk-title")
    browser.click("#settings-button")
    assert browser.one("#settings-title").get_property("value") == "Trains"
    browser.run("document.getElementById('settings-title').value = ''")
    browser.write("#settings-title", "Buses", enter=False)
    browser.click("#settings-policy option[value=rounds]")
    browser.click("#settings-kind option[value=code]")
    browser.write("#settings-participants", "Anna, Bob", enter=False)
    browser.write("#settings-time_zone", "Asia/Ho_Chi_Minh", enter=False)
    browser.click("#settings-dialog button[value=yes]")
    browser.until_text("Buses", "#talk-title")
    browser.until_text("Buses", "#conversations [aria-current] .title")
    shown = served.client.get(f"{CONVERSATIONS}/{name}").json()
    assert (shown["title"], shown["policy"], shown["kind"]) == ("Buses", "rounds", "code")
    assert (shown["participants"], shown["time_zone"]) == (["Anna", "Bob"], "Asia/Ho_Chi_Minh")
    browser.click("#settings-button")
    browser.click("#settings-dialog button[value=no]")
    assert served.client.get(f"{CONVERSATIONS}/{name}").json() == shown


def test_an_assistants_lines_have_its_name(browser: Browser, served: Server) -> None:
    post(served, "/v1/assistants", name="Lynly <b>Star</b>", biography="A bard.")
    name = post(served, CONVERSATIONS, assistant="Lynly <b>Star</b>")["id"]
    kept(served, name, "Who are you?", "I play the lute.")
    browser.open(f"{served.url}/#/chat/{name}")
    assert "Lynly <b>Star</b>" in browser.until_text("I play the lute.", ".message.assistant")


def test_earlier_messages_come_when_they_are_wanted(browser: Browser, served: Server) -> None:
    name = post(served, CONVERSATIONS, title="A long one")["id"]
    kept(served, name, *(f"Line {number} " + "of a long talk. " * 20 for number in range(40)))
    browser.open(f"{served.url}/#/chat/{name}")
    browser.until_text("Line 39", "#talk")
    assert "Line 9 " not in browser.text("#talk")
    assert browser.run("return window.scrollY") > 0
    at_delete_button = (
        "const at = document.getElementById('delete-button').getBoundingClientRect();"
        "return document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2).id"
    )
    assert browser.run(at_delete_button) == "delete-button", "the head of the conversation stays in view"
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
    # Nothing runs behind the reply, so that an idle model is one that has stopped.
    environment = {
        "HEARTH_MEMORY__ANSWER_TOKENS": "1024",
        "HEARTH_MEMORY__FACTS": "no",
        "HEARTH_MEMORY__TASKS": "no",
    }
    server = Server(tmp_path / "data", tiny_model, env=environment)
    try:
        browser.open(f"{server.url}/#/chat")
        browser.one("#message")
        browser.when_it_shows(".message[aria-busy] .text", click="#chat .stop")
        browser.write("#message", "Tell me a long story.")
        browser.until_text("not remembered", ".message.failed")
        name = name_in(browser)
        assert stored(server, name) == [("user", False), ("assistant", True)]
        eventually(lambda: host_has(server, 0), "the model goes on")
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


def test_what_was_said_is_found_and_a_secret_is_kept_on_demand(browser: Browser, served: Server) -> None:
    browser.open(f"{served.url}/#/chat")
    browser.write("#message", "In the zebra <b>cage</b>, the password is Tulpe-4471.")
    browser.until_text("Taken out before storing: 1 × password", ".talk")
    name = name_in(browser)
    assert "4471" not in browser.text(".message.user .text")
    button = next(each for each in browser.all(".talk button") if each.text == "Store it after all")
    button.click()
    browser.until_text("Tulpe-4471", ".message.user .text")
    browser.open(f"{served.url}/#/chat")
    browser.write("#search-field", "zebras")
    browser.until_text("In the zebra <b>cage</b>, the password is Tulpe-4471.", "#found")
    assert browser.run("return document.getElementById('conversations').hidden")
    browser.one("#found a").click()
    eventually(lambda: name_in(browser) == name, "the conversation is not opened")
    browser.write("#search-field", "giraffe")
    browser.until_text("Nobody said that.", "#found")
    served.client.delete(f"{CONVERSATIONS}/{name}")


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
