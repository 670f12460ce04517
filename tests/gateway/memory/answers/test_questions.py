"""Questions about oneself that code answers for small models."""

from __future__ import annotations

import pytest

from gateway.memory.answers.questions import own_question, recalled_answer, recalled_facts, told_in
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
    "my sister Fiona lives in Oban",
    "I'm vegetarian",
    "I work as a nurse at the hospital",
    "i hate olives",
    "i love pizza",
    "I drive a Skoda",
)


def answer(asked: str, facts: list[Fact]) -> str:
    question = own_question(asked)
    return recalled_answer(question, recalled_facts(question, facts)) if question is not None else ""


def fact(seq: int, key: str, text: str, quote: str) -> Fact:
    return Fact(
        seq=seq, id=str(seq), owner="o", scope="owner", scope_id="", key=key, text=text, quote=quote,
        conversation=None, message=None, reason="stated plainly", valid_from=0.0, ended_at=None, superseded_by=None,
    )  # fmt: skip


def remember(*told: str) -> list[Fact]:
    return [
        fact(seq, each.key, each.text, each.quote)
        for seq, said in enumerate(told)
        for each in stated_facts(said, "")
    ]


FACTS = remember(*SAID)


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
        ("remind me where I live", "we live in leeds"),
        ("do you still know my name", "my name is Ana"),
        ("whats my wifes name again", "my wife is called Ines"),
        ("who's my boss?", "My manager's name is Corinne"),
        ("what do i do for a living?", "I work as a nurse at the hospital"),
        ("what car do I have?", "I drive a Skoda"),
        ("do i eat meat?", "I'm vegetarian"),
        ("what foods don't I like?", "i hate olives"),
        ("do I like olives?", "i hate olives"),
        ("where am I living these days?", "we live in leeds"),
        ("where do I live, do you remember?", "we live in leeds"),
        ("what do I love doing?", "i love pizza"),
        ("where does my sister live?", "my sister Fiona lives in Oban"),
    ],
)
def test_a_question_about_oneself_is_answered_with_what_was_said(asked: str, quote: str) -> None:
    assert answer(asked, FACTS) == f"You told me: “{quote}”"


@pytest.mark.parametrize(
    "asked",
    [
        "where is my dog?",
        "where does my brother live?",
        "when is my wife's birthday?",
        "do I look good?",
        "am I right?",
        "what do we know about black holes?",
        "what's my cat called?",
        "where was I born?",
        "what is my boss like?",
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
    assert answer(asked, FACTS) == ""


def test_facts_that_lack_the_thing_that_is_asked_for_are_no_answer() -> None:
    told = remember("I've got two cats, Biscuit and Olive", "I don't drink coffee any more", "I'm from Graz")
    assert answer("what are my cats called?", told) == ""
    assert answer("do I eat meat?", told) == ""
    assert answer("do I drink coffee?", told) == "You told me: “I don't drink coffee any more”"
    assert answer("where am I from?", told) == "You told me: “I'm from Graz”"


def test_a_thing_that_is_only_named_is_no_answer() -> None:
    question = own_question("Which car did I have?")
    assert question is not None
    assert told_in(question, "my old car") == ""
    assert told_in(question, "my old car was a Skoda") == "my old car was a Skoda"


def test_a_vietnamese_name_is_asked_for_or_told() -> None:
    for asked in ("mèo của tôi tên gì?", "tên mèo của tôi?", "bạn có biết tên mình không?"):
        assert own_question(asked) is not None
    for told in ("con mèo của tôi tên là Mướp", "em gái tôi tên Lan.", "tôi tên là Nam"):
        assert own_question(told) is None


@pytest.mark.parametrize("asked", ["what do you know about me?", "So what have I told you about myself?"])
def test_everything_known_is_listed(asked: str) -> None:
    told = answer(asked, FACTS).splitlines()
    assert told == ["You told me:", *(f"- “{each.quote.removeprefix('and ')}”" for each in FACTS)]
    assert answer(asked, []) == ""


def test_a_fact_that_was_entered_has_no_quote() -> None:
    assert answer("where do I live?", [fact(1, "home_city", "Lives in Turin.", "")]) == (
        "You told me: Lives in Turin."
    )


def test_in_vietnamese() -> None:
    facts = [fact(1, "home_city", "Người dùng sống ở Đà Nẵng.", "mình sống ở Đà Nẵng")]
    assert answer("tôi sống ở đâu?", facts) == "Bạn đã nói: “mình sống ở Đà Nẵng”"
    assert answer("nhà mình ở đâu ấy nhỉ?", facts) == "Bạn đã nói: “mình sống ở Đà Nẵng”"
    assert answer("mình sống ở đâu, bạn nhớ không?", facts) == "Bạn đã nói: “mình sống ở Đà Nẵng”"
    assert answer("bây giờ mình ở đâu?", facts) == "Bạn đã nói: “mình sống ở Đà Nẵng”"
    boss = fact(2, "sep", "Sếp người dùng là chị Thu.", "sếp mình là chị Thu")
    assert answer("sếp mình tên gì?", [boss]) == "Bạn đã nói: “sếp mình là chị Thu”"
    assert answer("mình nên sống ở đâu?", facts) == ""
    assert answer("bạn biết gì về mình?", facts) == "Bạn đã nói: “mình sống ở Đà Nẵng”"


@pytest.mark.parametrize(
    ("said", "asked", "clause"),
    [
        ("hey! I take the 42 bus to work, it's slow", "which bus do I take?", "I take the 42 bus to work"),
        ("my meeting with Bob is at 9", "what time is my meeting with Bob?", "my meeting with Bob is at 9"),
        (
            "Our anniversary is on the 9th of October",
            "when is our anniversary?",
            "Our anniversary is on the 9th of October",
        ),
        ("mình gửi xe ở tầng 3", "mình gửi xe ở đâu nhỉ?", "mình gửi xe ở tầng 3"),
        ("my brother lives in Oslo", "where do I live?", ""),
        ("My brother moved, living in Leeds now", "where do I live?", ""),
        ("Bob lives near my house", "where do I live?", ""),
        ("chị gái mình sống ở Hà Nội", "mình sống ở đâu?", ""),
        ("my boss is sick", "who's my boss?", ""),
        ("I live in Leeds with my two kids", "what are my kids called?", ""),
        ("i take the number 42 bus to work", "what time do I work?", ""),
        ("i take the number 42 bus to work", "how long does my bus take?", ""),
        ("I have a meeting at 9", "where is my meeting?", ""),
        ("mình thích cà phê sữa đá", "mình thích ai?", ""),
        ("do I take the bus?", "which bus do I take?", ""),
        ("if I take the 42 bus I am late", "which bus do I take?", ""),
        ("I love buses", "do I love buses?", ""),
        ("no lilies for me, since I'm allergic", "what am I allergic to?", ""),
        ("I haven't painted many fences", "which fences have I painted?", ""),
        ("I finished a puzzle that took ages", "which puzzles have I finished?", ""),
        (
            "I finished a puzzle called Harbour",
            "which puzzles have I finished?",
            "I finished a puzzle called Harbour",
        ),
    ],
)
def test_a_clause_about_its_writer_answers_too(said: str, asked: str, clause: str) -> None:
    question = own_question(asked)
    assert question is not None
    assert told_in(question, said) == clause
