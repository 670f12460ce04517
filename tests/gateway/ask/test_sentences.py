"""Sentences, whole and streamed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.text.sentences import Splitter, sentences, split_units

PIECES = st.sampled_from(
    [
        "Foo",
        "bar",
        ".",
        "!",
        "?",
        " ",
        "\n",
        "[1]",
        "[2, 3]",
        "[",
        "1",
        "]",
        ",",
        '"',
        "e.g.",
        "C.",
        "```",
        "…",
    ]
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It is 3.5 wide. Yes.", ["It is 3.5 wide.", "Yes."]),
        ("Press '.' or 's' to rest. Then '?' helps.", ["Press '.' or 's' to rest.", "Then '?' helps."]),
        ("It says 'Stop'. Then go.", ["It says 'Stop'.", "Then go."]),
        ('("What?" she said.) "Go!" Yes.', ['("What?" she said.)', '"Go!"', "Yes."]),
        (
            "See 7.4 (“What is it?”) that comes with it. Yes.",
            ["See 7.4 (“What is it?”) that comes with it.", "Yes."],
        ),
        ("TVs, printers etc. are found. Yes.", ["TVs, printers etc. are found.", "Yes."]),
        ("TVs, printers etc. Some are found.", ["TVs, printers etc.", "Some are found."]),
        ("Many, e.g. Piet, do. So there.", ["Many, e.g. Piet, do.", "So there."]),
        ("Made by C. Pressey. It works.", ["Made by C. Pressey.", "It works."]),
        ("John C. Reynolds did. Who?", ["John C. Reynolds did.", "Who?"]),
        ("Made by Jim Welsh and D. Bustard. Yes.", ["Made by Jim Welsh and D. Bustard.", "Yes."]),
        ("Found by W.H. Wollaston. Yes.", ["Found by W.H. Wollaston.", "Yes."]),
        ("It is written in C. It is fast.", ["It is written in C.", "It is fast."]),
        ("A was made. [1] B was. [2]", ["A was made. [1]", "B was. [2]"]),
        ("A was made [1]. B was [2][3].", ["A was made [1].", "B was [2][3]."]),
        ('He said "no." She left.', ['He said "no."', "She left."]),
        ("1. First. 2. Second.", ["1. First.", "2. Second."]),
        ("no stop", ["no stop"]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_lines_and_fenced_code() -> None:
    units = split_units("Look:\n```bf\n  x. y\n```\nDone. [1]\n")
    assert [(unit.lead, unit.body, unit.code) for unit in units] == [
        ("", "Look:", False),
        ("\n", "```bf", True),
        ("\n  ", "x. y", True),
        ("\n", "```", True),
        ("\n", "Done. [1]", False),
    ]


def test_a_sentence_is_given_out_when_its_marker_has_come() -> None:
    splitter = Splitter()
    assert splitter.feed("One.") == []
    assert splitter.feed(" [1") == []
    assert splitter.feed("]") == []
    assert [unit.body for unit in splitter.feed(" T")] == ["One. [1]"]
    assert [unit.body for unit in splitter.end()] == ["T"]


@given(st.lists(PIECES, max_size=30))
def test_streaming_cuts_as_the_whole_is_cut(pieces: list[str]) -> None:
    splitter = Splitter()
    streamed = [unit for piece in pieces for unit in splitter.feed(piece)] + splitter.end()
    assert streamed == split_units("".join(pieces))


@given(st.text())
def test_only_trailing_space_is_lost(text: str) -> None:
    assert "".join(unit.lead + unit.body for unit in split_units(text)) == text.rstrip()
