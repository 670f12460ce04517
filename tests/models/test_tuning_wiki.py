"""Items that code makes from a wiki: what it asks is in the page, what it refuses is not, and no wiki is told."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.wiki.source import Section
from tests.models.scripts import scripts_of

TUNING = Path(__file__).resolve().parents[2] / "models" / "tuning"
LEAD = "<language> (GRV) Gorvex is a language developed by Nel Otter in May 1987.\n\nA goose.\n\nAuthor | Nel Otter"


@pytest.fixture(scope="module")
def tuning() -> Iterator[Any]:
    with scripts_of(TUNING) as imported:
        yield imported


def section(heading: str, text: str) -> Section:
    return Section(heading, heading, 2 if heading else 1, text)


def test_questions_are_answered_by_the_page(tuning: Any) -> None:
    sections = [
        section("", LEAD),
        section("Syntax", "Every line of a program begins with a goose."),
        section("See also", LEAD),
    ]
    page = tuning("wiki").page_of("Gorvex", sections, random.Random(1))
    made = {question: answer for question, answer, _ in page.ask}
    sentence = "Gorvex is a language developed by Nel Otter in May 1987 [1]."
    assert made["Who developed Gorvex?"] == made["When was Gorvex developed?"] == sentence
    assert made["Author of Gorvex?"] == "The author of Gorvex is Nel Otter [1]."
    assert made["Syntax of Gorvex"] == "Every line of a program begins with a goose [1]."
    assert len(made) == 5 and sum(answer == sentence for answer in made.values()) == 3
    assert all(tuning("check").passage(page.text, quote) for _, _, quote in page.ask)
    assert [question for question, _ in page.terms] == list(made)


def test_a_sentence_about_something_else_says_not_who_and_when(tuning: Any) -> None:
    lead = "Gorvex is a language for geese. Its rival Nel was developed by Ann Otter in 1987."
    page = tuning("wiki").page_of("Gorvex", [section("", lead)], random.Random(1))
    assert len(page.ask) == 1


def test_long_pages_end_with_a_sentence(tuning: Any) -> None:
    sections = [
        section("", "A goose is a bird of the pond. " * 90),
        section("Food", "It eats grass all day long."),
    ]
    page = tuning("wiki").page_of("Goose", sections, random.Random(1))
    assert len(page.text) < 1300 and page.text.endswith("pond.")


def test_no_page_answers_what_is_refused(tuning: Any) -> None:
    wiki, names = tuning("wiki"), ["Gorvex", "Nel", "Otter"] * 9
    texts = ["{} is a language for geese and ducks.", "{} is older than Gorvex, Nel and Otter of 1999."]
    pages = [
        wiki.page_of(n, [section("", texts[k % 2].format(n))], random.Random(k)) for k, n in enumerate(names)
    ]
    wiki.refuse(pages, random.Random(1))
    refused = [(page, question) for page in pages for question, _ in page.no]
    assert refused and all("older" not in page.text for page, _ in refused)
    assert all(question not in [asked for asked, *_ in page.ask] for page, question in refused)


def test_a_page_that_answers_stands_not_beside_a_refusal(tuning: Any) -> None:
    items, render = tuning("items"), tuning("render")
    page = items.Page("Mill", "The mill stands still.", no=[["What is Inn?", "Inn"]])
    for seed in range(9):
        (asked,), _ = render.example(
            items.Item("no", page), [items.Page("Inn", "It is full.")], random.Random(seed)
        )
        assert "It is full." not in str(asked)


@pytest.mark.parametrize(
    ("made", "told"), [(None, "does not exist"), ("x.xml", "cannot be imported"), ("hearth.db", "read")]
)
def test_what_is_no_wiki_is_told(tmp_path: Path, made: str | None, told: str) -> None:
    wiki = tmp_path / "wiki"
    if made:
        wiki.mkdir()
        (wiki / made).write_text("nothing")
    command = [
        sys.executable,
        str(TUNING / "examples.py"),
        "none.gguf",
        str(tmp_path / "out.jsonl"),
        "--wiki",
        str(wiki),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and f"WIKI={wiki}" in done.stderr and told in done.stderr
