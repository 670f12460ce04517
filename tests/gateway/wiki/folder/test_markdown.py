"""Markdown to sections."""

from __future__ import annotations

import time

import pytest

from gateway.wiki.folder.markdown import extract_markdown


def test_sections_lists_tables_and_code() -> None:
    text = (
        "---\ntitle: x\n---\nA **lead** with a [link](http://x) and ![a picture](y.png).\n\n"
        "## Prices & times ##\n\n| What | Price |\n|---|:-:|\n| `Soup` | 3 € |\n\n* one\n  + two\n1. three\n\n"
        "```sh\n# no heading\nls __x__\n```\n\nOld style\n---------\nsnake_case stays, _so_ too.\n"
    )
    found = [(each.heading, each.anchor, each.level, each.text) for each in extract_markdown(text)]
    assert found == [
        ("", "", 1, "A lead with a link and ."),
        (
            "Prices & times",
            "prices-times",
            2,
            "What | Price\nSoup | 3 €\n\n- one\n  - two\n1. three\n\n# no heading\nls __x__",
        ),
        ("Old style", "old-style", 2, "snake_case stays, so too."),
    ]


@pytest.mark.parametrize(
    "piece", ["[", "![](", "**a", "|-", "`", "_a", "#", "---\n", "[a](", "**a ", "_a ", "`a\n", "\\"]
)
def test_hostile_text_is_quick(piece: str) -> None:
    started = time.monotonic()
    extract_markdown(piece * (100_000 // len(piece)))
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (
            "You can wear up to two rings, one\non each hand.\nNo more.",
            "You can wear up to two rings, one on each hand. No more.",
        ),
        (
            "- one that goes\n  on here\n- two\n1. three\n   and on",
            "- one that goes on here\n- two\n1. three and on",
        ),
        ("In the year\n1987. It was\n- an item", "In the year 1987. It was\n- an item"),
        ("1. one\n2. two", "1. one\n2. two"),
        ("a break  \nthen\\\nmore", "a break\nthen\nmore"),
        ("> quoted over\n> two lines", "quoted over two lines"),
        ("a [link over\nlines](x) and **bold\nwords**", "a link over lines and bold words"),
        (
            "Run it:\n\n    make  all\n    make test\n\nDone.",
            "Run it:\n\n    make  all\n    make test\n\nDone.",
        ),
        ("above\n\n* * *\n\nbelow", "above\n\n\nbelow"),
        ("a | b\n--|--\n1 | 2\n\nprose | with a bar\ngoes on", "a | b\n1 | 2\n\nprose | with a bar goes on"),
        ("use `*args, **kwargs`, snake\\_case and \\*", "use *args, **kwargs, snake_case and *"),
        ("![`x`](y) then `z`", " then z"),
        ("\ue000\ue0000\ue0011\ue001", "01"),
    ],
)
def test_lines_of_a_paragraph_are_joined(text: str, read: str) -> None:
    assert [each.text for each in extract_markdown(text)] == [read]
