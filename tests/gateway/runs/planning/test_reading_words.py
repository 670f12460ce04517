"""Words that mean looking into a file or the wiki, and keeping what was found."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.runs.planning.words import items_of_words
from gateway.runs.tool import Toolbox
from tests.gateway.runs.planning.conftest import KNOWN


@pytest.mark.parametrize(
    ("title", "calls"),
    [
        (
            "check docs/opening.md for the hours and ask the wiki who made Befunge",
            [
                ("read_file", {"path": "docs/opening.md"}),
                ("think", {"question": "the hours"}),
                ("ask_wiki", {"question": "who made Befunge"}),
            ],
        ),
        (
            "read docs/opening.md and note down when it closes",
            [
                ("read_file", {"path": "docs/opening.md"}),
                ("think", {"question": "when it closes"}),
                ("remember", {"text": "when it closes: {{2}}"}),
            ],
        ),
        (
            "give me a two sentence summary of till.py",
            [
                ("read_file", {"path": "src/till.py"}),
                ("think", {"question": "give me a two sentence summary of till.py"}),
            ],
        ),
        (
            "tìm giờ mở cửa trong docs/opening.md",
            [("read_file", {"path": "docs/opening.md"}), ("think", {"question": "giờ mở cửa"})],
        ),
        (
            "look through docs/opening.md and tell me when it opens",
            [("read_file", {"path": "docs/opening.md"}), ("think", {"question": "when it opens"})],
        ),
        (
            "save a summary of what Piet is to my notes",
            [("ask_wiki", {"question": "what Piet is"}), ("remember", {"text": "what Piet is: {{1}}"})],
        ),
        (
            "find out who made Piet and then note down when Befunge was made",
            [
                ("ask_wiki", {"question": "who made Piet"}),
                ("ask_wiki", {"question": "when Befunge was made"}),
                ("remember", {"text": "when Befunge was made: {{2}}"}),
            ],
        ),
        ("keep in mind that who wins is unimportant", [("remember", {"text": "who wins is unimportant"})]),
        ("remember what I said", []),
        ("hàm total được gọi ở đâu?", [("callers_of", {"name": "total"})]),
        ("tra xem Piet do ai tạo ra", [("ask_wiki", {"question": "Piet do ai tạo ra"})]),
        (
            "who made Befunge? save it as a note",
            [
                ("ask_wiki", {"question": "who made Befunge"}),
                ("remember", {"text": "who made Befunge: {{1}}"}),
            ],
        ),
    ],
)
def test_what_is_found_can_be_kept(tools: Toolbox, title: str, calls: list[Any]) -> None:
    found = [
        (item.tool["name"], item.tool["arguments"]) if item.tool else ("think", {"question": item.title})
        for item in items_of_words(title, tools, KNOWN)
    ]
    assert found == calls
