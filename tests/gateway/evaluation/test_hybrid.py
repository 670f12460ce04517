"""Search by words and by meaning together, with real vectors, on questions in other words than the pages' titles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.ask.text.words import content_words
from gateway.base.resources import bundled
from gateway.evaluation.questions import load_questions

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
