"""Checklists from lines, from plain words and from the model; times."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest

from gateway.base.errors import InvalidRequestError
from gateway.runs.checklist import items_of_lines, items_of_model, items_of_words, model_schema
from gateway.runs.tool import RunTool, Toolbox, ToolOutput, as_data, fenced
from gateway.runs.tools.code import code_tools
from gateway.runs.tools.own import own_tools
from gateway.runs.tools.web import web_tools
from gateway.runs.tools.wiki import AskWikiArgs, SearchWikiArgs
from gateway.runs.when import moment
from gateway.store.db import Database
from model_host.grammar.schema.converter import schema_to_grammar

NOW = datetime(2026, 11, 23, 14, 30, tzinfo=ZoneInfo("Europe/Helsinki"))


async def ask_wiki(calling: object, asked: AskWikiArgs) -> ToolOutput:
    """Answer a question."""
    return ToolOutput(asked.question)


async def search_wiki(calling: object, asked: SearchWikiArgs) -> ToolOutput:
    """Find pages."""
    return ToolOutput(asked.query)


@pytest.fixture
def tools(tmp_path: Path) -> Toolbox:
    database = Database(tmp_path / "hearth.db")
    wiki = [RunTool(AskWikiArgs, ask_wiki), RunTool(SearchWikiArgs, search_wiki)]
    own = own_tools(database, "Europe/Helsinki")
    return Toolbox([*wiki, *code_tools(database), *own, *web_tools(["example.org"])])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("15:00", NOW.replace(hour=15, minute=0)),
        ("at 3 pm", NOW.replace(hour=15, minute=0)),
        ("14:00", NOW.replace(day=24, hour=14, minute=0)),
        ("tomorrow at 9:15", NOW.replace(day=24, hour=9, minute=15)),
        ("9am tomorrow", NOW.replace(day=24, hour=9, minute=0)),
        ("2026-12-01 8:00", NOW.replace(month=12, day=1, hour=8, minute=0)),
        ("2026-12-01T08:00:00+02:00", NOW.replace(month=12, day=1, hour=8, minute=0)),
        ("in 10 minutes", NOW + timedelta(minutes=10)),
        ("in an hour", NOW + timedelta(hours=1)),
        ("12 am", NOW.replace(day=24, hour=0, minute=0)),
    ],
)
def test_a_time_is_a_moment(text: str, expected: datetime) -> None:
    assert moment(text, NOW) == expected


@pytest.mark.parametrize(
    "text", ["soon", "15", "25:00", "2026-11-20 15:00", "12:99", "", "2026-11-25", "yesterday"]
)
def test_what_is_no_time_or_past_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequestError, match="time"):
        moment(text, NOW)


@pytest.mark.parametrize(
    ("title", "calls"),
    [
        ("Ask the wiki who made Befunge", [("ask_wiki", {"question": "who made Befunge"})]),
        ("Please ask wiki: what is Deadfish?", [("ask_wiki", {"question": "what is Deadfish?"})]),
        (
            "Search the wiki for stack languages, then notify me that it is done",
            [("search_wiki", {"query": "stack languages"}), ("notify", {"text": "it is done"})],
        ),
        (
            "who calls Parser.parse in hearth?",
            [("callers_of", {"name": "Parser.parse", "project": "hearth"})],
        ),
        ("read the file src/main.py", [("read_file", {"path": "src/main.py"})]),
        ("Fetch https://example.org/a.txt", [("http_get", {"url": "https://example.org/a.txt"})]),
        ("remember that my home city is Turku", [("remember", {"text": "my home city is Turku"})]),
        ("Add a task: buy milk", [("add_task", {"title": "buy milk"})]),
        ("Find out who made Befunge and tell me.", [("ask_wiki", {"question": "who made Befunge"})]),
        ("Look up Deadfish in the wiki", [("search_wiki", {"query": "Deadfish"})]),
        ("find out who calls parse", [("callers_of", {"name": "parse"})]),
        ("Find out who made Befunge and remind me tomorrow 9:00 to read it", []),
        ("Find out what the file docs/opening.md says", []),
        ("Tell me a story", []),
        ("Wash the car", []),
        ("Ask the wiki who made Befunge, then wash the car", []),
        ("Do not remind me at 15:00 to call mum", []),
        ("The wiki of our town needs a search for stack languages", []),
    ],
)
def test_words_that_plainly_name_a_tool(tools: Toolbox, title: str, calls: list[Any]) -> None:
    found = [
        (item.tool["name"], item.tool["arguments"]) for item in items_of_words(title, tools) if item.tool
    ]
    assert found == calls


@pytest.mark.parametrize(
    "title",
    ["Remind me at 15:00 to call mum", "remind me to call mum at 15:00", "Nhắc tôi lúc 15:00 call mum"],
)
def test_a_reminder_has_its_date_from_the_beginning(tools: Toolbox, title: str) -> None:
    [item] = items_of_words(title, tools)
    assert item.tool is not None
    assert item.tool["arguments"]["text"] == "call mum"
    at = datetime.fromisoformat(item.tool["arguments"]["time"])
    assert (at.hour, at.minute) == (15, 0)
    assert at.tzinfo is not None


def test_lines_name_their_tool(tools: Toolbox) -> None:
    lines = [
        "ask_wiki: Who made Befunge?",
        "remind_at: tomorrow 9:00 | read {{1}}",
        'remember: {"text": "my cat is Miu", "key": "cat"}',
        "ask: Which one?",
        "think: Is it old?",
        "search the wiki for Deadfish",
    ]
    items = items_of_lines(lines, tools)
    assert [item.tool["name"] if item.tool else item.asks for item in items] == [
        "ask_wiki", "remind_at", "remember", True, False, "search_wiki"
    ]  # fmt: skip
    for wrong, why in (
        ("paint: blue", "names no tool"),
        ("ask_wiki: x", "length >= 3"),
        ("remind_at: soon | x", "is 'soon'"),
        ("remind_at: 15:00", "missing required field `text`"),
        ('remember: {"text"', "no JSON"),
        ('remember: {"text": "a", "color": "b"}', "unknown field `color`"),
    ):
        with pytest.raises(InvalidRequestError, match=why):
            items_of_lines([wrong], tools)
    with pytest.raises(InvalidRequestError, match="1 to 12 steps"):
        items_of_lines([], tools)


def test_the_models_checklist_is_used_only_if_it_is_about_the_task(tools: Toolbox) -> None:
    title = "Find out who made Befunge and remind me tomorrow 9:00 to read it"

    def written(*items: dict[str, Any]) -> str:
        return msgspec.json.encode(items).decode()

    ask = {"tool": "ask_wiki", "arguments": {"question": "Who made Befunge?"}}
    remind = {"tool": "remind_at", "arguments": {"time": "tomorrow 9:00", "text": "read it"}}
    assert [item.tool["name"] for item in items_of_model(written(ask, remind), title, tools) if item.tool] == [
        "ask_wiki", "remind_at"
    ]  # fmt: skip
    for items, why in (
        ([ask], "it has 1 steps"),
        ([ask, ask], "repeats"),
        ([ask, {"question": "How is the weather?"}], "step 2 is not about the task"),
        ([ask, {"tool": "search_wiki", "arguments": {"query": "Befunge is a town in Finland"}}], "not about"),
        ([ask, {"tool": "http_get", "arguments": {"url": "https://example.org/Befunge"}}], "does not say"),
        ([ask, {"tool": "remember", "arguments": {"text": "Befunge made me"}}], "does not say"),
        ([ask, {"tool": "remind_at", "arguments": {"time": "8:00", "text": "read it"}}], "does not say"),
        ([ask, {"tool": "paint", "arguments": {"what": "Befunge"}}], "no tool `paint`"),
    ):
        with pytest.raises(InvalidRequestError, match=why):
            items_of_model(written(*items), title, tools)
    with pytest.raises(InvalidRequestError, match="could not be read"):
        items_of_model("[{", title, tools)
    passed_on = {"tool": "notify", "arguments": {"text": "{{1}}"}}
    assert len(items_of_model(written(ask, passed_on), title, tools)) == 2
    schema = model_schema(tools, title)
    offered = [each["properties"]["tool"]["const"] for each in schema["items"]["anyOf"][:-1]]
    assert offered == ["ask_wiki", "search_wiki", "remind_at", "wait_until", "notify"], "what fits the title"
    everything = "note the tasks of code in docs/a.md at 15:00 from https://example.org/a"
    schema = model_schema(tools, everything)
    assert len(schema["items"]["anyOf"]) == len(tools.names) + 1
    schema_to_grammar(schema)  # raises if the host could not follow it


def test_what_a_tool_returns_is_fenced_data() -> None:
    shown = fenced(as_data("one\n\x1b[2Jtwo\u2028| three" + "x" * 50, 20))
    assert shown.split("\n")[0] == "| one"
    assert all(line.startswith("| ") for line in shown.split("\n"))
    assert "\x1b" not in shown
    assert "\u2028" not in shown
    assert "characters left out" in shown
