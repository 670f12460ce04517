"""What generators of sites add to Markdown does not become text."""

from __future__ import annotations

import time

import pytest

from gateway.wiki.folder.dialects import front_title
from gateway.wiki.folder.markdown import extract_markdown


def read(text: str) -> str:
    return "\n".join(filter(str.strip, "\n".join(each.text for each in extract_markdown(text)).split("\n")))


@pytest.mark.parametrize(
    ("front", "title"),
    [
        ("---\ntitle: Posting: a guide\nweight: 3\n---\n# Other\n", "Posting: a guide"),
        ("---\r\nlayout: x\r\ntitle:   \"The 'best' way\"\r\n---\r\n", "The 'best' way"),
        ('+++\ntitle = "TOML"\n+++\n', "TOML"),
        ("---\nsubtitle: x\n---\ntitle: no\n", ""),
        ("# Heading\ntitle: no\n", ""),
    ],
)
def test_title_of_the_front_matter(front: str, title: str) -> None:
    assert front_title(front) == title


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ('{{< figure src="x" caption="y" >}}\nSee [port]({{< ref "/a#b" >}}){% raw %}.', "See port."),
        ("`{{< code >}}` and `<b>` stay", "{{< code >}} and <b> stay"),
        ("Press <kbd>Ctrl</kbd>+<kbd>C</kbd><br/>twice &amp; wait", "Press Ctrl+C twice & wait"),
        ("a <ID> or List<String> stays, <https://a.test/> too", "a <ID> or List<String> stays, https://a.test/ too"),
        ("So[^1].\n\n[^1]: A note.\n[link]: http://a.test", "So.\nA note."),
        ('!!! note "Hot"\n    Two\n    lines.\n\n    ```\n    ls\n    ```\nAfter.', "Hot\nTwo lines.\nls\nAfter."),
        ('=== "Linux"\n\n    Do this.', "Linux\nDo this."),
        (":::tip Title here\ninner\n:::", "Title here\ninner"),
        ("> [!NOTE]\n> Useful **info**.", "Useful info."),
        ("a <!-- x --> b\n<!-- c\nd -->\n<script>\nvar x;\n</script>\nend", "a  b end"),
        ("```\n<!-- kept -->\n{{< kept >}}\n!!! kept\n```", "<!-- kept -->\n{{< kept >}}\n!!! kept"),
        ("- item\n     ```py\n     # no heading\n     ```", "- item\n     # no heading"),
    ],
)  # fmt: skip
def test_additions_of_generators(text: str, plain: str) -> None:
    assert read(text) == plain


def test_a_heading_with_its_own_anchor() -> None:
    found = [
        (each.heading, each.anchor)
        for each in extract_markdown("## Text {#the-text}\n\n## Other {: #o .x }\n")
    ]
    assert found == [("", ""), ("Text", "the-text"), ("Other", "o")]


@pytest.mark.parametrize(
    "piece",
    [
        "{{<",
        "{%",
        "<a ",
        "<br ",
        " ",
        "<!--",
        "[^a",
        "[a]: ",
        "!!! ",
        ":::",
        "> [!A",
        "---\ntitle:",
        "<script",
    ],
)
def test_hostile_text_is_quick(piece: str) -> None:
    started = time.monotonic()
    for text in (piece * (100_000 // len(piece)), f"{piece}\n" * (100_000 // len(piece))):
        extract_markdown(text)
        front_title(text)
    assert time.monotonic() - started < 4
