"""`eval/asked.toml`: what users tell and ask about later, and lines that what is stored must not answer."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gateway.base.redact import redact
from gateway.memory.answers.questions import (
    own_question,
    recalled_answer,
    recalled_facts,
    told_answer,
    told_in,
)
from gateway.memory.learning.asked import stated_changes
from gateway.memory.learning.stated import stated_facts
from gateway.runs.planning.lists import list_requests
from gateway.store.db import Database
from gateway.store.memory.conversations import add_conversation
from gateway.store.memory.facts import Fact, put_fact
from gateway.store.memory.messages import page_of_messages
from tests.gateway.memory.answers.test_questions import fact
from tests.gateway.memory.answers.test_stored import Chat
from tests.gateway.memory.test_facts import fact as new_fact

NOT_FOUND = (
    "",
    "I do not find that in what you have told me.",
    "Mình không tìm thấy điều đó trong những gì bạn đã nói.",
)
EVAL = Path(__file__).parents[4] / "eval"


def _shows_list(asked: str) -> bool:
    return any(request.op == "show" for request in list_requests(asked))


def answer(told: list[str], asked: str) -> str:
    """What a message gets from the store after what was told."""
    if _shows_list(asked):
        return "\n".join(each.title for said in told for each in stated_changes(said, []))
    question = own_question(asked)
    if question is None:
        return ""
    facts: dict[str, Fact] = {}
    for said in told:
        for seq, each in enumerate(stated_facts(said)):
            facts[each.key] = fact(seq, each.key, each.text, each.quote)
    clauses = [clause for said in reversed(told) if (clause := told_in(question, said))]
    known = recalled_facts(question, list(facts.values()))
    return recalled_answer(question, known) or told_answer(question, clauses[:1], "")


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


class LongChat(Chat):
    """A chat whose facts and tasks are those that code finds in its messages."""

    titles: tuple[str, ...] = ()

    async def ask(self, text: str, speaker: str = "") -> str:
        return "\n".join(self.titles) if _shows_list(text) else await super().ask(text, speaker)

    async def tell(self, text: str) -> None:
        said = redact(text)[0]
        await self.say(said)
        self.titles += tuple(each.title for each in stated_changes(said, []) if each.op == "add")
        [last] = await self.database.read(lambda c: page_of_messages(c, self.conversation.id, limit=1))
        for each in stated_facts(said):
            owner = self.conversation.owner
            told = new_fact(each.text, each.key, owner, quote=each.quote, message=last.seq)
            await self.database.write(lambda c, told=told: put_fact(c, told))  # type: ignore[misc]


@pytest.mark.parametrize(("name", "least", "most_wrong"), [("asked_long", 33, 1), ("asked_typed", 45, 1)])
async def test_questions_about_what_was_said_in_long_chats_are_answered_rightly_or_not(
    database: Database, name: str, least: int, most_wrong: int
) -> None:
    chats = tomllib.loads((EVAL / f"{name}.toml").read_text(encoding="utf-8"))["chats"]
    right, wrong = 0, []
    for number, each in enumerate(chats):
        chat = LongChat(database, name=f"long{number}")
        await database.write(lambda c, made=chat.conversation: add_conversation(c, made))  # type: ignore[misc]
        for text in each["told"]:
            assert not any(secret in redact(text)[0] for secret in each.get("secrets", ()))
            await chat.tell(text)
        for asked, *words in [*each["asked"], *([line] for line in each["others"])]:
            answer = await chat.ask(asked)
            found = bool(words) and all(word.casefold() in answer.casefold() for word in words)
            right += found
            wrong += [] if found or answer in NOT_FOUND else [f"{asked} {answer}"]
    assert len(wrong) <= most_wrong, wrong
    assert right >= least


@pytest.mark.parametrize(("name", "least", "most_wrong"), [("chats_ordinary", 40, 1), ("chats_short", 78, 0)])
async def test_questions_within_chats_are_answered_rightly_or_not(
    database: Database, name: str, least: int, most_wrong: int
) -> None:
    chats = tomllib.loads((EVAL / f"{name}.toml").read_text(encoding="utf-8"))["chats"]
    right, wrong, missed = 0, [], []
    for number, each in enumerate(chats):
        chat = LongChat(database, name=f"{name}{number}")
        await database.write(lambda c, made=chat.conversation: add_conversation(c, made))  # type: ignore[misc]
        wanted = dict(each["asked"])
        for text in each["lines"]:
            assert not any(secret in redact(text)[0] for secret in each.get("secrets", ()))
            if text not in wanted:
                await chat.tell(text)
                continue
            answer = await chat.ask(text)
            found = wanted[text].casefold() in answer.casefold()
            right += found
            wrong += [] if found or not answer else [f"{text} {answer}"]
            missed += [] if found or answer else [text]
    assert len(wrong) <= most_wrong, wrong
    assert right >= least, missed


async def test_other_lines_are_left_to_the_model(database: Database) -> None:
    sets = [
        tomllib.loads((EVAL / f"{name}.toml").read_text(encoding="utf-8"))
        for name in ("asked", "asked_held_out")
    ]
    for number, each in enumerate(chat for one in sets for chat in one["chats"]):
        chat = LongChat(database, name=f"other{number}")
        await database.write(lambda c, made=chat.conversation: add_conversation(c, made))  # type: ignore[misc]
        for text in each["told"]:
            await chat.tell(text)
        assert [line for line in each["others"] if await chat.ask(line)] == []
