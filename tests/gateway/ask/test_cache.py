"""Summaries of pages are made once for a question, a page's revision, a prompt and a model; owners share none."""

from __future__ import annotations

import itertools

import apsw
import pytest

from gateway.ask.background.compact import CompactionCache, compaction_key
from gateway.store.compactions import get_compaction, put_compaction
from gateway.store.db import Database
from tests.gateway.ask.helpers import Asked, MemoryWiki, Model, page, step_of

FACT = "The fact number 150 of Befunge is word150."
QUESTION = "Which facts of Befunge are there?"
# More passages match than fit, so that a summary is made.
TEXT = " ".join(f"The fact number {n} of Befunge is word{n}." for n in range(200))
LIMITS = {"prompt_tokens": 380, "answer_tokens": 200, "passage_tokens": 40}


def asked(database: Database, model: Model, revision: int = 7, more: str = "") -> Asked:
    """A flow over a page that has to be summarized."""
    wiki = MemoryWiki(page("Befunge", f"{more}{TEXT}", revision=revision))
    return Asked(model, wiki, cache=CompactionCache(database), **LIMITS)


def model() -> Model:
    return Model(["Befunge"], FACT, FACT)


async def test_the_second_question_needs_no_summary(database: Database) -> None:
    used = model()
    flow = asked(database, used)
    first = await flow.ask(QUESTION)
    assert len(used.prompts("compact")) == 1
    again = await flow.ask("  which facts   of BEFUNGE are there?")
    assert len(used.prompts("compact")) == 1
    assert again.answer == first.answer
    assert flow.records[-1].details["summary_cached"] == ["Befunge"]


@pytest.mark.parametrize("change", ["owner", "question", "revision", "weights", "text"])
async def test_whatever_a_summary_depends_on_makes_a_new_one(database: Database, change: str) -> None:
    used = model()
    await asked(database, used).ask(QUESTION)
    if change == "weights":
        used.fingerprint = "weights-2"
    flow = asked(
        database,
        used,
        revision=8 if change == "revision" else 7,
        more="The fact number 200 of Befunge is new. " if change == "text" else "",
    )
    question = "What facts of Befunge are there?" if change == "question" else QUESTION
    await flow.ask(question, owner="bob" if change == "owner" else "alice")
    assert len(used.prompts("compact")) == 2


async def test_a_page_is_read_once_for_whoever_asks(database: Database) -> None:
    """All that stands before the question may stay in the KV cache, for other owners too."""
    used = model()
    flow = asked(database, used)
    await flow.ask(QUESTION)
    await flow.ask("What facts of Befunge are there?", owner="bob")
    begun = []
    for call in used.calls:
        if step_of(call) == "compact":
            assert call.messages is not None and not isinstance(call.messages[0].content, str)
            shared = list(itertools.takewhile(lambda part: part.shared, call.messages[0].content))
            begun.append("".join(part.text for part in shared))
    assert len(begun) == 2 and begun[0] == begun[1]
    assert "word50." in begun[0] and begun[0].endswith("Question: ")


async def test_what_was_cut_off_is_not_kept(database: Database) -> None:
    used = Model(["Befunge"], FACT, f"{FACT} " * 200)
    flow = asked(database, used)
    await flow.ask(QUESTION)
    await flow.ask(QUESTION)
    assert len(used.prompts("compact")) == 2


async def test_a_model_without_a_name_is_not_cached(database: Database) -> None:
    used = model()
    used.fingerprint = ""
    flow = asked(database, used)
    await flow.ask(QUESTION)
    await flow.ask(QUESTION)
    assert len(used.prompts("compact")) == 2


def test_the_longest_unused_go_first(database: Database) -> None:
    def check(c: apsw.Connection) -> None:
        for number in range(5):
            put_compaction(c, bytes([number]), f"text {number}", float(number), max_rows=3)
        assert get_compaction(c, b"\x01", 9.0) is None
        assert get_compaction(c, b"\x04", 9.0) == ("text 4", False)
        assert get_compaction(c, b"\x04", 99_999.0) == ("text 4", True)

    database.write_sync(check)


def test_keys_cannot_run_into_each_other() -> None:
    assert compaction_key(["ab", "c"]) != compaction_key(["a", "bc"]) != compaction_key(["", "abc"])
