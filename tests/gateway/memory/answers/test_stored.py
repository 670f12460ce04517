"""What is stored answers questions, for small models."""

from __future__ import annotations

from datetime import UTC
from types import SimpleNamespace
from typing import cast

import pytest

from gateway.config.settings import MemorySettings
from gateway.memory.answers.copies import without_recited
from gateway.memory.answers.stored import StoredAnswers
from gateway.memory.context import MemoryParts
from gateway.store.db import Database
from gateway.store.memory.conversations import Conversation, ConversationKind, add_conversation
from gateway.store.memory.facts import end_fact, put_fact
from gateway.store.memory.messages import NewMessage, add_message
from tests.gateway.memory.test_compose import line
from tests.gateway.memory.test_facts import fact
from tests.gateway.store.test_conversations import make

DAY = 86_400.0
NOW = 20_000 * DAY + 3_600


class Chat:
    """Messages of one conversation with a small model."""

    def __init__(
        self, database: Database, kind: ConversationKind = "chat", small: bool = True, name: str = "c1"
    ) -> None:
        self.database = database
        owner = "ann" if name == "c1" else name
        self.conversation: Conversation = make(name, owner, kind=kind)
        model = SimpleNamespace(small=small)
        parts = SimpleNamespace(
            database=database,
            settings=MemorySettings(),
            zone=lambda conversation: UTC,
            served=SimpleNamespace(current=model),
        )
        self.answers = StoredAnswers(cast("MemoryParts", parts))
        self.count = 0

    async def say(self, text: str, at: float = NOW, speaker: str = "", role: str = "user") -> None:
        self.count += 1
        message = NewMessage(
            id=f"m{self.count}", conversation=self.conversation.id, role=role, speaker=speaker, text=text, tokens=1,  # type: ignore[arg-type]
            redactions=0, created_at=at,
        )  # fmt: skip
        await self.database.write(lambda c: add_message(c, message))

    async def ask(self, text: str, speaker: str = "") -> str:
        await self.say(text, speaker=speaker)
        return (await self.answers.offer(self.conversation, text)).answer


@pytest.fixture
async def chat(database: Database) -> Chat:
    made = Chat(database)
    await database.write(lambda c: add_conversation(c, made.conversation))
    return made


async def test_what_no_fact_has_is_quoted_from_the_log(chat: Chat) -> None:
    await chat.say("i take the number 42 bus to work. And you?")
    await chat.say("You take the number 7 bus.", role="assistant")
    assert await chat.ask("which bus do I take again?") == "You told me: “i take the number 42 bus to work”"
    assert await chat.ask("which train do I take?") == ""
    assert await chat.ask("where do I take the bus?") == "You told me: “i take the number 42 bus to work”"
    assert await chat.ask("when do I feed the bus?") == ""


async def test_the_newest_statement_counts_and_an_earlier_day_is_named(chat: Chat) -> None:
    await chat.say("I park on level 2", at=NOW - 9 * DAY)
    await chat.say("I park on level 3", at=NOW - 2 * DAY)
    assert await chat.ask("where do I park?") == "You told me on 2024-10-02: “I park on level 3”"


async def test_a_later_decision_is_quoted_too(chat: Chat) -> None:
    await chat.say("I take the 42 bus to the office in Harehills")
    await chat.say("The office in Harehills is closed now")
    assert (await chat.ask("which bus do I take?")).splitlines() == [
        "You told me:",
        "- “I take the 42 bus to the office in Harehills”",
        "- “The office in Harehills is closed now”",
    ]


async def test_a_change_of_mind_is_quoted_beside_the_colour_that_it_changes(chat: Chat) -> None:
    for said in ("I think I'll paint the kitchen yellow", "actually I changed my mind, it will be green"):
        await chat.say(said)
    assert (await chat.ask("what colour will my kitchen be?")).splitlines() == [
        "You told me:",
        "- “I think I'll paint the kitchen yellow”",
        "- “actually I changed my mind, it will be green”",
    ]


async def test_a_name_tells_which_book_it_is(chat: Chat) -> None:
    await chat.say("I'm reading Dune at the moment, it's great")
    for asked in ("what am I reading?", "what are you reading?", "reading is fun"):
        await chat.say(asked)
    assert await chat.ask("what book am I reading?") == "You told me: “I'm reading Dune at the moment”"
    await chat.say("I play football with the boys on Sundays")
    assert await chat.ask("what instrument do I play?") == ""


async def test_when_a_flight_leaves_is_found_without_that_word(chat: Chat) -> None:
    told = "My flight is LH1234 on 5 December at 7:45"
    await chat.say(told)
    await chat.say("what's my flight number?")
    assert await chat.ask("when does my flight leave?") == f"You told me: “{told}”"


async def test_a_number_behind_the_clause_belongs_to_it(chat: Chat) -> None:
    await chat.say("I parked the car on level 3, spot 27")
    assert await chat.ask("where did I park?") == "You told me: “I parked the car on level 3, spot 27”"


@pytest.mark.parametrize(
    ("asked", "text", "key", "quote"),
    [
        ("do I have any pets?", "The user has a parrot named Kiwi.", "has: parrot", "I have a parrot named Kiwi"),
        ("what are my children called?", "The user's son Paul is 6.", "son: paul", "our son Paul is 6"),
        ("do I have siblings?", "The user's sister Ada lives in Oslo.", "sister: ada", "My sister Ada lives in Oslo"),
        ("do I have any allergies?", "The user is allergic to nuts.", "allergy: nuts", "I'm allergic to nuts"),
    ],
)  # fmt: skip
async def test_a_kind_of_what_is_asked_for_is_known(
    chat: Chat, asked: str, text: str, key: str, quote: str
) -> None:
    await chat.database.write(lambda c: put_fact(c, fact(text, key, quote=quote, message=1)))
    assert await chat.ask(asked) == f"You told me: “{quote}”"


async def test_a_fact_of_one_word_is_told_to_its_user(chat: Chat) -> None:
    await chat.database.write(lambda c: put_fact(c, fact("The user is 34.", "age", quote="34", message=1)))
    assert await chat.ask("how old am I?") == "You told me: you are 34."


async def test_a_new_time_of_a_plan_is_quoted_beside_its_fact(chat: Chat) -> None:
    told = "we're flying to Hanoi on 3 august"
    await chat.say(told)
    stored = fact("The user is flying to Hanoi on 3 august.", "trip: hanoi", quote=told, message=1)
    await chat.database.write(lambda c: put_fact(c, stored))
    assert await chat.ask("when do we fly?") == f"You told me: “{told}”"
    await chat.say("we booked a hotel in august after all")
    assert await chat.ask("when do we fly?") == f"You told me: “{told}”"
    changed = "the flight is cancelled, we go on 10 august instead"
    await chat.say(changed)
    assert await chat.ask("when do we fly?") == f"You told me:\n- “{told}”\n- “{changed}”"


async def test_what_was_taken_back_is_not_quoted(chat: Chat) -> None:
    await chat.say("I take the blue pill every morning")
    await chat.say("Good.", role="assistant")
    await chat.say("just kidding")
    assert await chat.ask("which pill do I take?") == ""


async def test_what_was_forgotten_is_not_quoted(chat: Chat) -> None:
    await chat.say("I live in Turin")
    put = await chat.database.write(
        lambda c: put_fact(
            c, fact("The user lives in Turin.", "home_city", quote="I live in Turin", message=1)
        )
    )
    assert await chat.ask("where do I live?") == "You told me: “I live in Turin”"
    assert put is not None
    await chat.database.write(lambda c: end_fact(c, put.id, "ann", now=NOW, reason="forgotten"))
    assert await chat.ask("where do I live?") == "I do not find that in what you have told me."


async def test_what_others_said_is_not_quoted(chat: Chat) -> None:
    await chat.say("I take the 42 bus", speaker="Bob")
    assert await chat.ask("which bus do I take?", speaker="Ann") == ""


async def test_a_fact_of_another_speaker_is_none_of_ones_own(chat: Chat) -> None:
    await chat.say("I live in Turin", speaker="Bob")
    told = fact("Bob lives in Turin.", "home_city: bob", quote="I live in Turin", message=1)
    await chat.database.write(lambda c: put_fact(c, told))
    assert await chat.ask("where do I live?", speaker="Bo") == ""
    assert await chat.ask("where do I live?", speaker="Bob") == "You told me: “I live in Turin”"


async def test_larger_models_and_channels_are_asked(database: Database) -> None:
    large = Chat(database, small=False)
    await database.write(lambda c: add_conversation(c, large.conversation))
    await large.say("I take the 42 bus")
    assert await large.ask("which bus do I take?") == ""
    channel = Chat(database, kind="channel")
    channel.count = large.count
    assert await channel.ask("which bus do I take?") == ""


def test_answers_are_in_no_later_prompt() -> None:
    lines = [
        ("user", "I live in Turin"),
        ("assistant", "You told me that."),
        ("user", "where do I live?"),
        ("assistant", "You told me: “I live in Turin”"),
        ("user", "what's on today?"),
        ("assistant", "On your list: Buy bread"),
        ("user", "who are you?"),
        ("assistant", "You told me nothing."),
        ("user", "what's on today?"),
    ]
    messages = [line(seq, role, text) for seq, (role, text) in enumerate(lines)]
    assert [
        message.seq for message in without_recited(messages, lambda reply: reply.startswith("On your list"))
    ] == [0, 1, 6, 7, 8]


def test_marks_of_secrets_are_in_no_prompt_of_a_small_model() -> None:
    """SmolLM2 told of "the breakdown of a redacted password" when it was asked what a catalyst does."""
    messages = [line(0, "user", "the login is tom and [redacted]"), line(1, "assistant", "Noted.")]
    shown = without_recited(messages, lambda reply: False)
    assert [message.text for message in shown] == ["the login is tom and …", "Noted."]


async def test_a_newer_figure_is_quoted_beside_the_old_one(chat: Chat) -> None:
    await chat.say("the build takes 20 minutes on my laptop")
    await chat.say("ccache helped, 3 minutes now")
    answer = await chat.ask("how long does my build take?")
    assert answer.index("20 minutes") < answer.index("3 minutes now")
    await chat.say("the net for the pond costs 400 kronor")
    await chat.say("hm found one for 250 on blocket")
    answer = await chat.ask("how much is the net?")
    assert answer.index("400") < answer.index("250")


async def test_where_a_thing_stands_and_who_took_a_place(chat: Chat) -> None:
    await chat.say("our ci runs on github, the arm runner is a raspberry pi 4 under my desk")
    await chat.say("my best man is my brother Callum")
    await chat.say("so my friend Dev is best man now")
    assert "under my desk" in await chat.ask("where does the arm runner stand?")
    answer = await chat.ask("who is my best man?")
    assert answer.index("Callum") < answer.index("Dev")


async def test_a_question_goes_on_with_the_one_before(chat: Chat) -> None:
    await chat.say("My brothers: Tom lives in Leeds, Alex lives in York.")
    assert "Alex lives in York" in await chat.ask("where does Alex live?")
    await chat.say("You told me so.", role="assistant")
    assert "Tom lives in Leeds" in await chat.ask("and Tom?")
    assert await chat.ask("and you?") == ""


async def test_a_name_is_told_in_the_next_message(chat: Chat) -> None:
    await chat.say("my dog died yesterday")
    await chat.say("I am sorry.", role="assistant")
    await chat.say("his name was Rufus")
    answer = await chat.ask("what was my dog's name?")
    assert "my dog died yesterday" in answer
    assert "his name was Rufus" in answer
