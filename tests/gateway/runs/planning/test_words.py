"""Checklists from lines, from plain words and from the model; times."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

import pytest

from gateway.base.errors import InvalidRequestError
from gateway.runs.planning.beyond import beyond_steps
from gateway.runs.planning.checklist import items_of_lines, lines_in
from gateway.runs.planning.known import NamedThings
from gateway.runs.planning.words import items_of_words, options, parts_of
from gateway.runs.tool import Toolbox, as_data, fenced, without_repetition
from tests.gateway.runs.planning.conftest import KNOWN


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
        ("Find out what the file docs/opening.md says", [("read_file", {"path": "docs/opening.md"})]),
        ("What's in till.py?", [("read_file", {"path": "src/till.py"})]),
        (
            "When does it open? It is written in docs/opening.md",
            [("read_file", {"path": "docs/opening.md"}), ("think", {"question": "When does it open"})],
        ),
        (
            "Read docs/opening.md and tell me when it opens",
            [("read_file", {"path": "docs/opening.md"}), ("think", {"question": "when it opens"})],
        ),
        ("Find the functions of shop that use total", [("callers_of", {"name": "total"})]),
        (
            "See which code uses the discount in shop",
            [("search_code", {"query": "discount", "project": "shop"})],
        ),
        ("hey, could you check what Deadfish is? thanks", [("ask_wiki", {"question": "what Deadfish is"})]),
        ("Tell me about Deadfish", [("ask_wiki", {"question": "What is Deadfish?"})]),
        (
            "How do I print a line in Befunge?",
            [("ask_wiki", {"question": "How do I print a line in Befunge?"})],
        ),
        (
            "Compare Befunge and Deadfish",
            [
                ("ask_wiki", {"question": "What is Befunge?"}),
                ("ask_wiki", {"question": "What is Deadfish?"}),
                ("think", {"question": "Compare Befunge and Deadfish"}),
            ],
        ),
        (
            "Look up Deadfish and write down what it is",
            [
                ("ask_wiki", {"question": "What is Deadfish?"}),
                ("remember", {"text": "Deadfish: {{1}}"}),
            ],
        ),
        (
            "Learn how Deadfish prints and compare it with Befunge",
            [
                ("ask_wiki", {"question": "how Deadfish prints"}),
                ("ask_wiki", {"question": "What is Befunge?"}),
                ("think", {"question": "compare it with Befunge"}),
            ],
        ),
        (
            "Find out which languages Chris made and tell me about the oldest one",
            [
                ("ask_wiki", {"question": "which languages Chris made"}),
                ("think", {"question": "What is the oldest one?"}),
            ],
        ),
        ("Save that my doctor is Dr. Okafor", [("remember", {"text": "my doctor is Dr. Okafor"})]),
        ("Put 'call the bank' on my to-do list", [("add_task", {"title": "call the bank"})]),
        ("Remember to buy milk", [("add_task", {"title": "buy milk"})]),
        ("Hãy ghi nhớ rằng tôi thích trà", [("remember", {"text": "tôi thích trà"})]),
        ("Thêm việc: mua sữa", [("add_task", {"title": "mua sữa"})]),
        ("Cho tôi biết ai tạo ra Befunge", [("ask_wiki", {"question": "ai tạo ra Befunge"})]),
        (
            "read docs/opening.md and tell me if I can come at 1pm",
            [("read_file", {"path": "docs/opening.md"}), ("think", {"question": "if I can come at 1pm"})],
        ),
        ("whats Befunge and who made it", [("ask_wiki", {"question": "whats Befunge and who made it"})]),
        ("Befunge là gì vậy", [("ask_wiki", {"question": "Befunge là gì"})]),
        (
            "Đọc docs/opening.md rồi cho tôi biết mấy giờ mở cửa",
            [("read_file", {"path": "docs/opening.md"}), ("think", {"question": "mấy giờ mở cửa"})],
        ),
        ("nhớ giùm là thứ năm đổ rác", [("remember", {"text": "thứ năm đổ rác"})]),
        (
            "Tìm xem ai tạo ra Befunge, rồi ghi lại",
            [
                ("ask_wiki", {"question": "ai tạo ra Befunge"}),
                ("remember", {"text": "ai tạo ra Befunge: {{1}}"}),
            ],
        ),
        (
            "Remember that if the alarm rings, the code is on the door",
            [("remember", {"text": "if the alarm rings, the code is on the door"})],
        ),
        (
            "look up when Befunge was made and save that to my notes please",
            [
                ("ask_wiki", {"question": "when Befunge was made"}),
                ("remember", {"text": "when Befunge was made: {{1}}"}),
            ],
        ),
        (
            "who calls total in the project? write it down",
            [("callers_of", {"name": "total"}), ("remember", {"text": "callers of total: {{1}}"})],
        ),
        (
            "Tìm xem ai tạo ra Befunge rồi lưu vào sổ tay giúp tôi",
            [
                ("ask_wiki", {"question": "ai tạo ra Befunge"}),
                ("remember", {"text": "ai tạo ra Befunge: {{1}}"}),
            ],
        ),
        (
            "read docs/opening.md and tell me in two sentences what it says",
            [
                ("read_file", {"path": "docs/opening.md"}),
                ("think", {"question": "in two sentences what it says"}),
            ],
        ),
        (
            "summarize docs/opening.md and save the summary",
            [
                ("read_file", {"path": "docs/opening.md"}),
                ("think", {"question": "summarize docs/opening.md"}),
                ("remember", {"text": "summarize docs/opening.md: {{2}}"}),
            ],
        ),
        (
            "give me a short summary of docs/opening.md",
            [
                ("read_file", {"path": "docs/opening.md"}),
                ("think", {"question": "give me a short summary of docs/opening.md"}),
            ],
        ),
        ("tra giúp tôi thủ đô của Mông Cổ", [("search_wiki", {"query": "thủ đô của Mông Cổ"})]),
        ("kiểm tra xem Befunge do ai tạo ra", [("ask_wiki", {"question": "Befunge do ai tạo ra"})]),
        ("Find out who made Befunge. Tomorrow at 9:00", []),
        ("remind me about the meeting 10 minutes before 3pm", []),
        ("tell me at 5pm who made Befunge", []),
        ("Clean up the attic and save that to my notes", []),
        ("Find out who made Befunge and add it to my list", []),
        ("find out who made Befunge and put it on my list to read about it", []),
        (
            "look up Befunge pls n save who made it",
            [
                ("search_wiki", {"query": "Befunge"}),
                ("ask_wiki", {"question": "who made Befunge"}),
                ("remember", {"text": "who made Befunge: {{2}}"}),
            ],
        ),
        ("hu made Befunge", [("ask_wiki", {"question": "who made Befunge"})]),
        ("ai goi ham total", [("callers_of", {"name": "total"})]),
        (
            "does docs/opening.md say when it closes",
            [("read_file", {"path": "docs/opening.md"}), ("think", {"question": "when it closes"})],
        ),
        ("is milk on my shopping list?", [("list_tasks", {})]),
        (
            "add milk and eggs to my shopping list",
            [("add_task", {"title": "milk"}), ("add_task", {"title": "eggs"})],
        ),
        ("take milk off my shopping list", []),
        ("don't forget to set a reminder to pay rent", []),
        ("Remember that my lock code is [redacted]", []),
        ("Find out who made Befunge, and if it is Chris, remember that he likes art", []),
        ("If docs/opening.md says eight, add a task to change the sign", []),
        ("Nếu mở cửa lúc tám giờ, thêm việc: đổi biển", []),
        ("Add a task: paint the door. Unless it rains, add a task: dry it", []),
        ("Remind me to water the plants every Monday at 9:00", []),
        ("nhắc tôi uống thuốc mỗi ngày lúc 8 giờ", []),
        ("what calls total and what's in that file?", []),
        ("Write a page on Befunge and put 'send it' on my list", []),
        ("Delete till.py", []),
        ("What is my name?", []),
        ("When the rain stops, close the windows", []),
        ("Tell me when it is 15:00", []),
        ("Do not remember that I am 30", []),
        ("Hãy mua gì đó cho mẹ", []),
        ("Look up Befunge and search the attic", []),
        ("Tell me a story", []),
        ("Wash the car", []),
        ("Ask the wiki who made Befunge, then wash the car", []),
        ("Do not remind me at 15:00 to call mum", []),
        ("The wiki of our town needs a search for stack languages", []),
    ],
)
def test_words_that_plainly_name_a_tool(tools: Toolbox, title: str, calls: list[Any]) -> None:
    found = [
        (item.tool["name"], item.tool["arguments"]) if item.tool else ("think", {"question": item.title})
        for item in items_of_words(title, tools, KNOWN)
    ]
    assert found == calls


@pytest.mark.parametrize(
    "title",
    [
        "Remind me at 15:00 to call mum",
        "remind me to call mum at 15:00",
        "At 3 pm ping me to call mum",
        "Nhắc tôi lúc 15:00 call mum",
        "nhắc mình call mum lúc 3 giờ chiều",
        "Remind me tomorrow to call mum at 15:00",
        "nhắc tôi chiều mai call mum lúc 3 giờ",
    ],
)
def test_a_reminder_has_its_date_from_the_beginning(tools: Toolbox, title: str) -> None:
    [item] = items_of_words(title, tools, KNOWN)
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


def test_one_line_may_hold_several_steps(tools: Toolbox) -> None:
    line = "ask_wiki: Who made Befunge; and why?; remember: {{1}}; note: it is old\nask: Which; one?"
    assert lines_in(line, tools) == [
        "ask_wiki: Who made Befunge; and why?",
        "remember: {{1}}; note: it is old",
        "ask: Which; one?",
    ]


def test_a_part_that_no_rule_knows_leaves_only_what_it_says(tools: Toolbox) -> None:
    known = NamedThings(files={"docs/a.md": "docs/a.md"}, names={"parse": "parse | shop"}, any_project=True)
    title = "Ask the wiki who made Befunge; I need to polish parse of docs/a.md on 2030-01-01 15:00 from https://example.org/a"
    asked, unknown = parts_of(title, tools, known)
    assert [item.title for item in asked.items] == ["ask_wiki: who made Befunge"]
    assert unknown.items == []
    lines = options(unknown.text, tools, known)
    assert {line.partition(":")[0] for line in lines} == {
        "ask_wiki", "search_wiki", "remember", "add_task", "search_code", "callers_of", "read_file", "remind_at",
        "wait_until", "http_get",
    }  # fmt: skip
    assert len(items_of_lines(lines, tools)) == len(lines), "each is a step"
    for item in items_of_lines(lines, tools):
        assert item.tool is not None
        for name, value in item.tool["arguments"].items():
            said = "15:00" if name == "time" else value
            assert all(word in [*title.split(), "15:00", "shop", ""] for word in said.split()), item


def test_a_step_that_could_not_be_made_is_not_offered(tools: Toolbox) -> None:
    lines = options("My bike needs air today", tools, KNOWN)
    assert "remember: My bike needs air today" in lines
    assert "remember: Keep it" in options("Keep it", tools, KNOWN)
    assert not any(line.startswith("remember") for line in options("send Anna 50 euros", tools, KNOWN))
    assert not any(line.startswith(("remind_at", "wait_until")) for line in lines), "today has no hour"
    for text in ("gửi email cho anh Nam", "show Sam the program", "ask Pam"):
        lines = options(text, tools, KNOWN)
        assert not any(line.startswith(("remind_at", "wait_until")) for line in lines), (
            "no minute is in a name"
        )
    assert any(line.startswith("wait_until: 5m") for line in options("the kettle, 5m", tools, KNOWN))


def test_the_end_of_a_wait_tells_what_is_written(tools: Toolbox) -> None:
    for title in (
        "wait 2 seconds then tell me 'tea is ready'",
        "Wait 2 seconds, then tell me tea is ready",
        "wait 2 seconds, then notify me that tea is ready",
    ):
        waited, told = items_of_words(title, tools, KNOWN)
        assert waited.title.startswith("wait_until: ")
        assert told.tool == {"name": "notify", "arguments": {"text": "tea is ready"}}


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ("Check if till.py has a bug, and if it does, add a task", "condition"),
        ("Nếu mưa thì đóng cửa sổ", "condition"),
        ("Find out if Befunge is old", ""),
        ("Every Monday at 9 remind me to water the plants", "none repeats"),
        ("Halme bakes every Monday", ""),
        ("please don't remind me about the dentist any more", "deletes, cancels"),
        ("đừng nhắc tôi nữa", "deletes, cancels"),
        ("remind me yesterday to pay rent", "past"),
        ("read notes/budget.xlsx", "'notes/budget.xlsx'"),
        ("polish docs/opening.md", ""),
        ("please remember that my lock code is [redacted]", "secret was taken out"),
        ("remind me that the code is [redacted]", "needs what it is for, and a time"),
        ("post it to me@example.org or on Mon. morning, e.g. at 9.30", ""),
    ],
)
def test_what_no_step_can_do_is_said(tools: Toolbox, part: str, why: str) -> None:
    found = beyond_steps(part, tools, KNOWN)
    assert re.search(why, found) if why else found == ""


def test_an_address_without_an_allowed_host_is_said() -> None:
    found = beyond_steps("summarize https://example.org/report.pdf", Toolbox([]), KNOWN)
    assert "`tasks.http_hosts` lists no host" in found


def test_a_task_is_no_task_to_be_listed(tools: Toolbox) -> None:
    assert not any(line.startswith("add_task") for line in options("book me a flight to Oslo", tools, KNOWN))
    assert "add_task: my to-do list lacks milk" in options("my to-do list lacks milk", tools, KNOWN)


def test_what_a_model_says_again_is_left_out() -> None:
    again = "It opens at seven.\n\n" * 40 + "It opens at"
    assert without_repetition(again) == "It opens at seven."
    assert (
        without_repetition("It opens at 7. It closes at 12. it opens at 7.")
        == "It opens at 7. It closes at 12."
    )
    for kept in ("a = 1\n}\n}\nb = 2", "Version 1.2 came first. Version 1.3 followed.", "It opens at seven"):
        assert without_repetition(kept) == kept


def test_what_a_tool_returns_is_fenced_data() -> None:
    shown = fenced(as_data("one\n\x1b[2Jtwo\u2028| three" + "x" * 50, 20))
    assert shown.split("\n")[0] == "| one"
    assert all(line.startswith("| ") for line in shown.split("\n"))
    assert "\x1b" not in shown
    assert "\u2028" not in shown
    assert "characters left out" in shown
