"""Questions about oneself that code answers for small models."""

from __future__ import annotations

import pytest

from gateway.memory.answers import asks_for_tasks, recalled_answer, task_answer
from gateway.memory.learning.stated import stated_facts
from gateway.store.memory.facts import Fact

SAID = (
    "hey! we live in leeds",
    "My manager's name is Corinne",
    "my name is Ana",
    "I'm allergic to nuts",
    "I have a dog called Bruno",
    "I am 34 years old",
    "my birthday is 3 May",
    "I moved and my wife is called Ines",
)


def fact(seq: int, key: str, text: str, quote: str) -> Fact:
    return Fact(
        seq=seq, id=str(seq), owner="o", scope="owner", scope_id="", key=key, text=text, quote=quote,
        conversation=None, message=None, reason="stated plainly", valid_from=0.0, ended_at=None, superseded_by=None,
    )  # fmt: skip


FACTS = [
    fact(seq, each.key, each.text, each.quote)
    for seq, said in enumerate(SAID)
    for each in stated_facts(said, "")
]


@pytest.mark.parametrize(
    ("asked", "quote"),
    [
        ("where do I live?", "we live in leeds"),
        ("Do you know where we live again?", "we live in leeds"),
        ("what's my manager's name?", "My manager's name is Corinne"),
        ("and what’s my manager called", "My manager's name is Corinne"),
        ("do you remember my name?", "my name is Ana"),
        ("who am I?", "my name is Ana"),
        ("What am I allergic to?", "I'm allergic to nuts"),
        ("how old am I?", "I am 34 years old"),
        ("when is my birthday", "my birthday is 3 May"),
        ("who is my wife?", "my wife is called Ines"),
        ("hey, what's my dog called?", "I have a dog called Bruno"),
    ],
)
def test_a_question_about_oneself_is_answered_with_what_was_said(asked: str, quote: str) -> None:
    assert recalled_answer(asked, FACTS) == f"You told me: “{quote}”"


@pytest.mark.parametrize(
    "asked",
    [
        "where is my dog?",
        "what is my wife doing?",
        "where does my manager live?",
        "what is my name in Japanese?",
        "Where do I live in this story",
        "what should I cook for my wife?",
        "where can I buy nuts?",
        "what is the capital of my country?",
        "What do I do if I have a dog?",
        "how many dogs do I have?",
        "I live in leeds",
        "what are nuts?",
        "",
    ],
)
def test_any_other_question_is_left_to_the_model(asked: str) -> None:
    assert recalled_answer(asked, FACTS) == ""


@pytest.mark.parametrize("asked", ["what do you know about me?", "So what have I told you about myself?"])
def test_everything_known_is_listed(asked: str) -> None:
    told = recalled_answer(asked, FACTS).splitlines()
    assert told == ["You told me:", *(f"- “{each.quote.removeprefix('and ')}”" for each in FACTS)]
    assert recalled_answer(asked, []) == ""


def test_a_fact_that_was_entered_has_no_quote() -> None:
    assert recalled_answer("where do I live?", [fact(1, "home_city", "Lives in Turin.", "")]) == (
        "You told me: Lives in Turin."
    )


def test_in_vietnamese() -> None:
    facts = [fact(1, "home_city", "Người dùng sống ở Đà Nẵng.", "mình sống ở Đà Nẵng")]
    assert recalled_answer("tôi sống ở đâu?", facts) == "Bạn đã nói: “mình sống ở Đà Nẵng”"
    assert recalled_answer("mình nên sống ở đâu?", facts) == ""
    assert recalled_answer("bạn biết gì về mình?", facts) == "Bạn đã nói: “mình sống ở Đà Nẵng”"
    assert task_answer("hôm nay mình phải làm gì?", []) == "Hôm nay không có việc nào."


@pytest.mark.parametrize(
    ("asked", "whether"),
    [
        ("what are my tasks?", True),
        ("what's on my todo list today", True),
        ("What do I have to do today?", True),
        ("show me my to-do list please", True),
        ("hôm nay mình phải làm gì?", True),
        ("việc của tôi hôm nay", True),
        ("what's on my mind", False),
        ("what do I need to do to get a visa?", False),
        ("what is my task at work", False),
        ("add milk to my list", False),
        ("what are my tasks? and who are you?", False),
    ],
)
def test_who_asks_for_the_tasks(asked: str, whether: bool) -> None:
    assert asks_for_tasks(asked) == whether
