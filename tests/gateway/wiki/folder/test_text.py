"""Plain text to sections."""

from __future__ import annotations

import time

import pytest

from gateway.wiki.folder.text import extract_text
from gateway.wiki.source import Section

MANUAL = """The Kettle Manual

version 2

━━━━━━━━━━━━━━━━

Table of Contents

1. Introduction
    1.1. Why
2. Boiling

Chapter 1. Introduction

A kettle boils water. It is made of
steel and # has no markup * at all.

1.1. Why

3. is no heading, as it is a sentence.

    kettle --boil

┌────┬───────────────┐
│Key │  Description  │
├────┼───────────────┤
│On  │starts it and  │
│    │keeps it hot   │
└────┴───────────────┘

BOILING EGGS

Put them in.
"""


def test_headings_rows_and_paragraphs() -> None:
    assert extract_text(MANUAL) == [
        Section("", "", 1, "The Kettle Manual\n\nversion 2"),
        Section(
            "Chapter 1. Introduction",
            "chapter-1-introduction",
            1,
            "A kettle boils water. It is made of steel and # has no markup * at all.",
        ),
        Section(
            "1.1. Why",
            "11-why",
            3,
            "3. is no heading, as it is a sentence.\n\n    kettle --boil\n\n"
            "Key | Description\nOn | starts it and keeps it hot",
        ),
        Section("BOILING EGGS", "boiling-eggs", 2, "Put them in."),
    ]


def test_underlined_headings() -> None:
    text = "=====\nGuide\n=====\n\nx\n\nOne\n---\n\ny\n\nTwo\n===\n\nz\n\na line\nOne line\n---\n"
    found = [(each.level, each.heading, each.text) for each in extract_text(text)]
    assert found == [(1, "", ""), (1, "Guide", "x"), (2, "One", "y"), (1, "Two", "z\n\na line One line")]


def test_an_indented_paragraph_is_no_code() -> None:
    text = "--hot\n\n    Boil the water, and keep it\n    hot (for $MINUTES).\n\n    kettle --hot 5\n    Kettle(5).\n"
    (found,) = extract_text(text)
    assert found.text == (
        "--hot\n\nBoil the water, and keep it hot (for $MINUTES).\n\n    kettle --hot 5\n    Kettle(5)."
    )


@pytest.mark.parametrize(
    "piece", ["=", "a\n=\n\n", "1. a\n\n", "| a |\n", "+--", "A ", ". ", "Chapter 1 ", "   1", "│"]
)
def test_hostile_text_is_quick(piece: str) -> None:
    started = time.monotonic()
    extract_text(piece * (100_000 // len(piece)))
    extract_text(f"\n\n{piece * 30}" * 1000)
    assert time.monotonic() - started < 4
