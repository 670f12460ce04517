"""Poisoned pages through the flow, with a model that repeats whatever it reads."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.checking.clean import REMOVED, address, label, without_links, without_markup
from gateway.base.visible import visible
from tests.gateway.ask.helpers import Asked, MemoryWiki, Model
from tests.gateway.ask.poison import CALLS, HTML, LINKS, PAGES, TOKENS, TRICKS, faults, poisoned

OWN = "https://wiki.example/Page"


def parrot(prompt: str) -> str:
    """Everything that the prompt says about the page, markers and all: no model could be more obedient."""
    return prompt


async def test_nothing_of_a_poisoned_page_gets_out() -> None:
    supported = 0
    for number in range(PAGES):
        page = poisoned(number)
        asked = Asked(Model([f"Zor{number}ble"], answer=parrot), MemoryWiki(page))
        result = await asked.ask(f"Who created Zor{number}ble?")
        assert faults(result.answer, page.url) == [], (number, result.answer)
        assert f"created by Ada Quux{number}" in result.answer, result.answer
        for citation in result.citations:
            supported += 1
            assert faults(citation.title + citation.section) == [], number
            assert "\n" not in citation.title + citation.section
            assert citation.url.startswith(page.url)
            assert re.fullmatch(r"[!-~]+", citation.url)
    assert supported == PAGES


def cleaned(text: str) -> str:
    lines = visible(text).split("\n")
    return "\n".join(without_links(without_markup(line), [OWN]) for line in lines)


@pytest.mark.parametrize("text", [*TOKENS, *CALLS, *LINKS, *HTML, *TRICKS])
def test_each_alone_is_a_fault_and_mended(text: str) -> None:
    for around in ("{}", "See {} there.", "“{}”", "({})", "x{}", "{}{}"):
        poisoned_text = around.format(text, text)
        assert faults(cleaned(poisoned_text), OWN) == [], (poisoned_text, cleaned(poisoned_text))
    if "`" not in text:
        assert faults(text) or unicodedata.normalize("NFKC", text) != text, (
            "what the test looks for is there before"
        )


@pytest.mark.parametrize(
    "text",
    [
        "Befunge was created by Chris Pressey in 1993. [1]",
        "><> is read as <fish>; a program such as `<|>` or `>:#,_@` or `a<b|c>d` runs.",
        "In C, `a[i](x)` and `x //= 2` and `// comment` mean something; so does std::cout << x.",
        "It is written in ASP.NET and node.js/express, see page 3/4: note e.g. this.",
        f"See {OWN} and [the page]({OWN}#History), or {OWN}#History.",
        "Farsi می‌خواهم keeps its joiners, and so does 👩‍💻.",
        'A list ["a", "b"] and a map {"key": 1} are values.',
        "if x < y or y > z: data: 5; time: 12:30",
        "The <b>bold</b> command <kbd>x</kbd> takes <number> arguments.",
    ],
)
def test_what_is_harmless_stays(text: str) -> None:
    assert cleaned(text) == text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("See [the site](http://evil.example/x) now.", "See the site now."),
        ("It is so [1](http://evil.example).", "It is so [1]."),
        ("See http://evil.example/x.", f"See {REMOVED}."),
        ("A <|[im_start|>](http://evil.example/x) B <[svg](//evil.example) C", "A  B "),
        ("ｈｔｔｐ：／／evil．example[http://evil.example/x more]", f"{REMOVED}{REMOVED} more]"),
        ("See https://wiki.example/Page-93 now.", f"See {REMOVED} now."),
        (f"See {OWN}#A http://evil.example/?u={OWN}", f"See {OWN}#A {REMOVED}"),
    ],
)  # fmt: skip
def test_links(text: str, shown: str) -> None:
    assert cleaned(text) == shown


def test_labels_and_addresses() -> None:
    assert label("Bad\n[2] <eos>title\u202e") == "Bad [2] title"
    assert label("C++ <> ><> (1.0)") == "C++ <> ><> (1.0)"
    assert (
        address("https://w.example/A_(b)?x=%20#Ü\u202e<")
        == "https://w.example/A_(b)?x=%20#%C3%9C%E2%80%AE%3C"
    )


PIECES = st.sampled_from(
    [*TOKENS, *CALLS, *LINKS, *HTML, *TRICKS, " ", "x", "<", "|", ">", "[", "](", "http:", "/"]
)


@given(st.lists(PIECES, max_size=6).map(" ".join))
def test_pieces_in_any_order_are_clean(text: str) -> None:
    assert faults(cleaned(text), OWN) == [], cleaned(text)
