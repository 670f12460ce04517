"""`hearth chat` on a terminal: news of compactions and facts, and the commands."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from gateway.cli.chat.session import NewsBoard, news_text
from gateway.cli.common.client import GatewayClient
from tests.gateway.cli.conftest import run_command
from tests.gateway.cli.terminal import Terminal, terminal
from tests.gateway.memory.scripted_server import settings_for
from tests.gateway.memory.test_kills import Gateway


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    settings_for(tmp_path / "data", 0)
    gateway = Gateway(tmp_path / "data", seconds=0.5)
    yield gateway.url
    gateway.end(signal.SIGTERM)


def at_prompt(text: str) -> bool:
    return text.endswith("> ")


def typed(chat: Terminal, line: str, shows: str = "") -> str:
    """Type a line; return what is shown up to the prompt that follows ``shows``."""
    chat.type(f"{line}\n")
    # The terminal echoes the line before it.
    return chat.wait_for(lambda text: at_prompt(text) and shows in text.partition(line)[2]).partition(line)[2]


def test_a_chat_shows_what_happens_behind_it(url: str, environment: dict[str, str]) -> None:
    with terminal({**environment, "TERM": "dumb"}, "chat", "--url", url) as chat:

        def with_news(shown: str, news: str) -> str:
            """News come above the next prompt, or after it; then they are followed by another prompt."""
            if news in shown:
                return shown
            return shown + chat.wait_for(lambda text: news in text and at_prompt(text))

        chat.wait_for(at_prompt)
        with_news(typed(chat, "I have 10 apples", "So be it."), "remembered: apples")
        shown = ""
        for number in range(60):
            shown = typed(chat, f"I have {number % 7 + 10} apples " * 5, "So be it.")
            assert re.search(r"\[\d+ of \d+ tokens", shown)
            if "compacted now" in shown:
                break
        shown = with_news(shown, "compacted: 1 summary made")
        assert re.search(r"compacting \d+ tokens: now", shown)
        context = typed(chat, "/context", "compacted over 300")
        assert re.search(r"\d+  now\r?\n.*\d+  facts\r?\n +\d+  messages", context, re.S)
        assert "not in it: messages 1 to" in context
        assert "apples: Has apples." in typed(chat, "/context facts")
        assert "there is no block" in typed(chat, "/context nothing")
        assert "now (messages 1 to" in typed(chat, "/summaries")
        assert "here, you: I have 10 apples" in typed(chat, "/search apples 10")
        assert "nobody said that" in typed(chat, "/search zebra")
        assert "1 x password said in a sentence; /keep" in typed(
            chat, "the password is Tulpe-4471", "So be it."
        )
        assert "nobody said" in typed(chat, "/search tulpe")
        assert "the password is Tulpe-4471" in typed(chat, "/keep")
        assert "held in memory for 10 minutes" in typed(chat, "/keep")
        assert "home_city: Huế" in typed(chat, "/remember home_city Huế")
        assert "home_city" in (facts := typed(chat, "/facts hu")) and "apples" not in facts
        assert "forgotten: Huế" in typed(chat, "/forget home_city")
        assert "home_city" not in typed(chat, "/facts")
        assert "home_city: Huế" in typed(chat, "/undo home_city")
        usage = typed(chat, "/forget")
        assert "/forget FACT: " in usage and "of no fact" in typed(chat, "/forget nothing")
        assert "there are no tasks" in typed(chat, "/tasks")
        assert "no task" in typed(chat, "/done T-20261120-01")
        assert "is marked as failed" in typed(chat, "/failed")
        assert "there is no round 999" in typed(chat, "/failed 999")
        assert re.search(
            r"\d+ \(failed\)  the password is Tulpe-4471 \| So be it\.", typed(chat, "/rounds 1")
        )
        assert not re.search("assistant +None", typed(chat, "/set"))
        assert re.search(r"title +Apples\b", typed(chat, "/set title Apples"))
        assert re.search(r"policy +rounds\b", typed(chat, "/set policy rounds"))
        assert re.search(r"title +Apples\b.*policy +rounds\b", typed(chat, "/set"), re.S)
        assert re.search(r"participants +Anna, Bob\b", typed(chat, "/set participants Anna, Bob"))
        assert "unknown field `colour`" in typed(chat, "/set colour red")
        assert "/rollover" in typed(chat, "/help")
        assert "there is no command /nonsense" in typed(chat, "/nonsense")
        assert "erased" in typed(chat, "/erase")
        chat.type("\x04")
        assert chat.end() == 0
    assert b"Traceback" not in chat.shown


def test_an_assistant_is_made_edited_and_talked_with(
    url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    def group(*arguments: str) -> str:
        done = run_command(environment, tmp_path, "assistants", "--url", url, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    assert "there are no assistants" in group()
    assert "Wendy: A bard. (version 1)" in group("add", "Wendy", "A", "bard.")
    assert "Lynly Star: A bard of Riften. (version 2)" in group(
        "edit", "Wendy", "A bard of Riften.", "--name", "Lynly Star"
    )
    assert "Lynly Star: A bard of Riften." in group("show", "Lynly Star")
    unknown = run_command(environment, tmp_path, "assistants", "--url", url, "show", "Wendy")
    assert unknown.returncode == 1 and "there is no assistant `Wendy`" in unknown.stderr
    with terminal({**environment, "TERM": "dumb"}, "chat", "--url", url, "--assistant", "Lynly Star") as chat:
        chat.wait_for(at_prompt)
        typed(chat, "Who are you?", "So be it.")
        assert "You are Lynly Star." in typed(chat, "/context biography")
        assert re.search(r"assistant\r?\n", typed(chat, "/set assistant"))
        chat.type("\x04")
        assert chat.end() == 0
    assert "erased" in group("remove", "Lynly Star")


def test_a_line_is_not_lost_when_the_gateway_is_gone(tmp_path: Path, environment: dict[str, str]) -> None:
    settings_for(tmp_path / "data", 0)
    gateway = Gateway(tmp_path / "data")
    try:
        with terminal({**environment, "TERM": "dumb"}, "chat", "--url", gateway.url) as chat:
            chat.wait_for(at_prompt)
            assert "no line was typed yet" in typed(chat, "/again")
            typed(chat, "Hello there", "So be it.")
            gateway.end(signal.SIGKILL)
            typed(chat, "Is anybody there?", "/again sends your line again")
            gateway = Gateway(tmp_path / "data", port=int(gateway.url.rpartition(":")[2]))
            typed(chat, "/again", "So be it.")
            typed(chat, "/again", "So be it.")  # answered once, shown twice
            chat.type("\x04")
            assert chat.end() == 0
    finally:
        gateway.end(signal.SIGTERM)
    assert b"no server answers" in chat.shown
    database = apsw.Connection(str(tmp_path / "data" / "hearth.db"))
    lines = [row[0] for row in database.execute("SELECT text FROM messages ORDER BY seq")]
    database.close()
    assert lines == ["Hello there", "So be it.", "Is anybody there?", "So be it."]


@pytest.mark.parametrize(
    ("kind", "detail", "says"),
    [
        ("state", {"compacting": True}, "are being compacted"),
        ("state", {"compacting": False}, ""),
        ("compacting", {"tokens": 300, "levels": ["now"]}, "compacting 300 tokens: now"),
        ("compacted", {"summaries": 2}, "2 summaries"),
        ("compaction_failed", {"code": "x", "message": "no end"}, "later: no end"),
        ("compaction_stopped", {}, "goes on later"),
        ("tasks", {"changed": ["T-20261120-01"]}, "T-20261120-01"),
        ("missed", {"count": 3}, "3 notices"),
        ("erased", {}, "erased"),
        ("something new", {"a": 1}, ""),
        ("compacted", {}, ""),
    ],
)
def test_news_in_words(kind: str, detail: dict, says: str) -> None:
    assert says in news_text(kind, detail)
    assert bool(says) == bool(news_text(kind, detail))


def test_news_that_come_during_a_reply_are_shown_below_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A compaction may begin before the prompt is there again; one that the reply itself showed is not repeated."""
    board = NewsBoard(GatewayClient("http://127.0.0.1:9", None), "> ")
    own, after = "compacting 900 tokens: now", "compacting 300 tokens: now"
    board.show(own)
    board.skip(own)
    board.show(after)
    monkeypatch.setattr("builtins.input", lambda prompt: "hello")
    assert board.read_line() == "hello"
    assert capsys.readouterr().err == f"  [{after}]\n"
    board.skip(own)  # before its event has come
    board.show(own)
    board.read_line()
    assert capsys.readouterr().err == ""


def test_after_a_change_of_the_model_a_chat_goes_on(
    url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    asked = run_command(
        environment, tmp_path, "chat", "--url", url, stdin="I have 10 apples and 11 pears\n" * 3
    )
    assert asked.stdout.count("So be it.") == 3, asked.stderr
    database = apsw.Connection(str(tmp_path / "data" / "hearth.db"))
    database.set_busy_timeout(10_000)
    database.execute("UPDATE conversations SET model = 'gemma'")
    with terminal({**environment, "TERM": "dumb"}, "chat", "--url", url) as chat:
        shown = chat.wait_for(at_prompt)
        assert "the model was gemma and is scripted now; the conversation goes on" in shown
        assert "So be it." in typed(chat, "And plums?", "tokens]")
        chat.type("\x04")
        assert chat.end() == 0
    rows = database.execute(
        "SELECT model, archived_at IS NULL, (SELECT count(*) FROM messages) FROM conversations"
    )
    assert list(rows) == [("scripted", 1, 8)]
    database.close()


def test_facts_tasks_and_summaries_on_the_command_line(
    url: str, environment: dict[str, str], tmp_path: Path
) -> None:
    def hearth(*arguments: str) -> str:
        done = run_command(environment, tmp_path, *arguments, "--url", url)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def group(name: str, *arguments: str) -> str:
        done = run_command(environment, tmp_path, name, "--url", url, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    group("facts", "add", "home_city", "Lives", "in", "Huế.")
    assert "home_city: Lives in Huế." in hearth("facts")
    assert "forgotten" in group("facts", "forget", "home_city")
    assert "(ended)" in hearth("facts", "--all")
    assert "Lives in Huế." in group("facts", "undo", "home_city")
    objective = group("tasks", "add", "Move house", "--objective", "--day", "2026-11-20").split()[2]
    assert objective == "O-20261120-01"
    task = group(
        "tasks", "add", "Pack", "--parent", objective, "--day", "2026-11-20", "--archetype", "hybrid"
    )
    assert task == "[ ] T-20261120-01 (hybrid) Pack\n"
    group("tasks", "add", "Which van?", "--parent", "T-20261120-01", "--breakpoint", "The large one?")
    assert group("tasks", "state", "T-20261120-01.c1", "waiting").startswith("  [?] T-20261120-01.c1")
    assert hearth("tasks") == (
        "2026-11-20\n[ ] O-20261120-01 Move house\n[ ] T-20261120-01 (hybrid) Pack\n"
        "  [?] T-20261120-01.c1 Which van? BREAKPOINT: The large one?\n"
    )
    assert hearth("tasks", "--day", "today") == ""
    assert "0 summaries made again in 0 conversations" in hearth("memory", "convert")
    assert "deleted" in group("tasks", "delete", objective)
    assert hearth("tasks") == ""


def test_a_reply_that_its_limit_has_ended_is_told(url: str, environment: dict[str, str]) -> None:
    environment = {**environment, "TERM": "dumb"}
    for limit, ended in ("3", True), ("4", False):
        with terminal(environment, "chat", "--new", "--url", url, "--max-tokens", limit) as chat:
            chat.wait_for(at_prompt)
            shown = typed(chat, "Hello", " tokens")
            assert ("the reply reached its limit of tokens" in shown) == ended
            chat.type("\x04")
            assert chat.end() == 0
