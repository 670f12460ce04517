"""`eval/asked.toml`: what users tell and ask about later, and lines that what is stored must not answer."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gateway.memory.answers.listed import asks_for_tasks, task_answer
from gateway.memory.answers.questions import own_question, recalled_answer, told_answer, told_in
from gateway.memory.learning.asked import stated_changes
from gateway.memory.learning.stated import stated_facts
from gateway.store.memory.facts import Fact
from tests.gateway.memory.answers.test_questions import fact

EVAL = Path(__file__).parents[4] / "eval"


def answer(told: list[str], asked: str) -> str:
    """What a message gets from the store after what was told."""
    if asks_for_tasks(asked):
        return task_answer(asked, [each.title for said in told for each in stated_changes(said, [])])
    question = own_question(asked)
    if question is None:
        return ""
    facts: dict[str, Fact] = {}
    for said in told:
        for seq, each in enumerate(stated_facts(said)):
            facts[each.key] = fact(seq, each.key, each.text, each.quote)
    clauses = [clause for said in reversed(told) if (clause := told_in(question, said))]
    return recalled_answer(question, list(facts.values())) or told_answer(question, clauses[:1], "")


@pytest.mark.parametrize(("name", "right"), [("asked", 40), ("asked_held_out", 15)])
def test_what_was_told_is_answered_and_nothing_else(name: str, right: int) -> None:
    chats = tomllib.loads((EVAL / f"{name}.toml").read_text(encoding="utf-8"))["chats"]
    assert [line for chat in chats for line in chat["others"] if answer(chat["told"], line)] == []
    answered = [
        all(word.casefold() in answer(chat["told"], asked).casefold() for word in words)
        for chat in chats
        for asked, *words in chat["asked"]
    ]
    assert sum(answered) >= right
