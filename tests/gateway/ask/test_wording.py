"""Short forms of typed questions, and messages that ask nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.ask.text.wording import asks_nothing, written_out
from tests.gateway.ask.helpers import BEFUNGE, Asked, MemoryWiki, Model, page


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("whats befunge", "what is befunge"),
        ("Whos Chris Pressey?", "who is Chris Pressey?"),
        ("why doesnt it halt, pls?", "why does not it halt, please?"),
        ("can u tell me abt piet", "can you tell me about piet"),
        ("Which program is written in U?", "Which program is written in U?"),
        ("what does u.s mean", "what does u.s mean"),
        ("What is Befunge?", "What is Befunge?"),
    ],
)
def test_short_forms_are_written_out(typed: str, read: str) -> None:
    assert written_out(typed) == read


@given(st.text(max_size=80))
def test_any_text_can_be_written_out(text: str) -> None:
    assert written_out(written_out(text)) == written_out(text)
    asks_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "Hello there!",
        "thanks a lot",
        "hello, what can you do?",
        "help",
        "xin chào bạn",
        "OK, thank you",
    ],
)
def test_messages_that_ask_nothing(text: str) -> None:
    assert asks_nothing(text)


@pytest.mark.parametrize(
    "text",
    [
        "help page",
        "hi, what is Befunge?",
        "What is this language?",
        "who are you calling",
        "hello world",
    ],
)
def test_messages_that_ask_something(text: str) -> None:
    assert not asks_nothing(text)


async def test_a_greeting_is_answered_with_questions_to_ask() -> None:
    model = Model([], "")
    asked = Asked(model, MemoryWiki(page("Befunge", *BEFUNGE)))
    result = await asked.ask("hello!")
    assert result.answer.endswith(", for example: What is Befunge?")
    assert not model.calls
    assert not result.citations


async def test_the_model_and_the_search_get_the_question_written_out() -> None:
    model = Model(["Befunge"], "Befunge is a language.")
    asked = Asked(model, MemoryWiki(page("Befunge", *BEFUNGE)))
    await asked.ask("whats Befunge")
    assert asked.stages("search")[0]["term"] == "what is Befunge"
