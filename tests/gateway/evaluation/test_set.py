"""The shipped question sets: no question twice, every fact on an expected page; and what each kind of search finds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from gateway.ask.text.words import content_words
from gateway.base.errors import ConfigurationError
from gateway.base.resources import bundled
from gateway.evaluation.questions import Question, load_questions, problems
from gateway.evaluation.report import summary
from gateway.evaluation.run import Evaluator
from gateway.wiki.local import LocalWiki

QUESTIONS = load_questions(bundled("eval/esolangs.toml"))


def test_there_are_enough_and_none_twice() -> None:
    assert sum(question.answerable for question in QUESTIONS) >= 120
    assert sum(not question.answerable for question in QUESTIONS) >= 20
    texts = Counter(" ".join(question.text.split()).casefold() for question in QUESTIONS)
    assert [text for text, count in texts.items() if count > 1] == []


async def test_retrieval_finds_the_page_by_the_questions_own_words(wiki: LocalWiki) -> None:
    rows = [row async for row in Evaluator(wiki, None).run(QUESTIONS)]
    told = summary(rows)
    assert told["questions"] == len(QUESTIONS)
    assert told["hit_at_3_own_words"] >= 0.95
    assert told["hit_at_1_own_words"] >= 0.9


async def test_every_fact_stands_on_an_expected_page(wiki: LocalWiki) -> None:
    assert await problems(wiki, QUESTIONS) == []


async def test_a_set_that_does_not_fit_the_wiki_is_described(wiki: LocalWiki) -> None:
    wrong = [
        Question(id="a", category="x", text="?", pages=["Befunge"], facts=[["Pressey"], ["Julius Caesar"]]),
        Question(id="b", category="x", text="?", pages=["No such page"], facts=[["1"]]),
        Question(id="c", category="x", text="?"),
    ]
    assert await problems(wiki, wrong) == [
        "a: `Julius Caesar` is on none of its pages",
        "b: the wiki has no page `No such page`",
        "b: `1` is on none of its pages",
    ]


def test_the_second_set_has_what_it_promises() -> None:
    questions = load_questions(bundled("eval/foldoc.toml"))
    types = Counter(question.category for question in questions)
    assert len(questions) >= 150 and sum(not question.answerable for question in questions) >= 40
    assert {"redirect", "near_duplicate", "acronym", "paraphrase"} <= types.keys()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "question"),
        ('[[question]]\nid = "a"\ncategory = "x"\ntext = "y"\nfacts = [["z"]]', "needs both"),
        ('[[question]]\nid = "a"\ncategory = "x"\ntext = "y"\n' * 2, "twice"),
        ('[[question]]\nid = "a"\ncategory = "x"\ntext = "y"\nfacts = [[]]', "facts"),
    ],
)
def test_a_wrong_set_is_refused(tmp_path: Path, content: str, says: str) -> None:
    path = tmp_path / "set.toml"
    path.write_text(content)
    with pytest.raises(ConfigurationError, match=says):
        load_questions(path)


SETS = ("esolangs_paraphrased", "foldoc_paraphrased")


@pytest.mark.parametrize("name", SETS)
def test_no_question_shares_a_content_word_with_a_title(name: str) -> None:
    questions = load_questions(bundled(f"eval/{name}.toml"))
    assert len(questions) >= 60
    for question in questions:
        for title in question.pages:
            assert not set(content_words(question.text)) & set(content_words(title)), question.id


def hits(minilm: Path, search: str) -> list[float]:
    """hit@1, hit@3 and hit@5 on the sample wiki."""
    questions = bundled("eval/esolangs_paraphrased.toml")
    command = [sys.executable, "-m", "gateway.cli.main", "eval", "--terms", "question", "--json"]
    env = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
    env |= {
        "HEARTH_WIKI__SEARCH": search,
        "HEARTH_EMBEDDING__MODEL": str(minilm),
        "HEARTH_EMBEDDING__THREADS": "1",
        "HEARTH_EMBEDDING__SEARCH_TIMEOUT_SECONDS": "60",
    }
    done = subprocess.run(
        [*command, "--set", str(questions)], capture_output=True, text=True, check=True, env=env, timeout=240
    )
    told = json.loads(done.stdout)["summary"]
    return [told[f"hit_at_{first}_own_words"] for first in (1, 3, 5)]


def test_both_searches_find_more_than_words_alone(minilm: Path) -> None:
    words, both = hits(minilm, "text"), hits(minilm, "both")
    assert both[1] >= words[1] + 0.08
    assert both[2] >= words[2] + 0.05
    assert both[0] >= words[0] - 0.06  # synonyms find more first places by words alone
