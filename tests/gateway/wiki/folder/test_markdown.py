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


@pytest.mark.parametrize("piece", ["[", "![](", "**a", "|-", "`", "_a", "#", "---\n", "[a]("])
def test_hostile_text_is_quick(piece: str) -> None:
    started = time.monotonic()
    extract_markdown(piece * (100_000 // len(piece)))
    assert time.monotonic() - started < 2
