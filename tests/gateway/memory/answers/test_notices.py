"""Notices in place of what a small model would invent."""

from __future__ import annotations

import pytest

from gateway.memory.answers.notices import (
    SECRETS_UNSTORED,
    UNSPOKEN,
    UNTRANSLATED,
    abilities,
    called,
    forgetting,
    just_said,
    unspoken,
    unstored,
    untranslated,
)
from gateway.models.catalog import Catalog


@pytest.mark.parametrize(
    "text",
    [
        "xin chào",
        "bạn là ai?",
        "hôm nay tôi hơi buồn",
        "Kể cho mình nghe một câu chuyện vui đi",
        "được không?",
        "xin chao ban",
        "toi ten gi",
    ],
)
def test_a_model_for_english_says_that_it_speaks_no_vietnamese(text: str) -> None:
    assert unspoken(["en"], text) == UNSPOKEN
    assert unspoken(["en", "vi"], text) == unspoken([], text) == ""


@pytest.mark.parametrize(
    "text",
    ["hi", "no, an ant can do", "what does 'xin chào' mean?", "My friend Nguyễn Văn An is here", "À bientôt, mon ami",
     "¿Cómo te llamas?", "Café is nice", "I sang ten songs", "la la la", "你好", "", "😀", "42"],
)  # fmt: skip
def test_any_other_message_is_left_to_the_model(text: str) -> None:
    assert unspoken(["en"], text) == ""


def test_the_standard_model_converses_in_english() -> None:
    assert Catalog.load().standard.languages == ("en",)


@pytest.mark.parametrize(
    "text",
    [
        "what can you do?",
        "Hi! What can you help me with?",
        "how can you help me",
        "what are you good at?",
        "do you remember things?",
        "can you remember what I tell you",
    ],
)
def test_the_question_for_what_one_can_do_here_is_answered(text: str) -> None:
    assert "wiki" in abilities(text)


@pytest.mark.parametrize(
    "text",
    [
        "what can you do about rust?",
        "what can I do?",
        "can you help me with my essay?",
        "what do you do all day?",
        "do you remember my name?",
        "do you remember the film?",
    ],
)
def test_other_questions_are_left_to_the_model(text: str) -> None:
    assert abilities(text) == ""


def test_a_secret_is_not_stored() -> None:
    english, vietnamese = SECRETS_UNSTORED
    assert unstored("my wifi password is [redacted]") == (english, False)
    assert unstored("mật khẩu wifi của mình là [redacted]") == (vietnamese, False)
    assert unstored("my PIN is [redacted]. What is a good PIN?") == (english, True)
    assert unstored("what is a PIN?") == ("", False)


@pytest.mark.parametrize(
    "chat",
    [
        ['translate "good night" into French', "and into German?", "Spanish?"],
        ["how do you say thank you in Italian?"],
        ["what's a nice way to say hello in Spanish?", "thanks! and in Dutch"],
        ["Can you translate this to English: Guten Tag"],
        ["do you speak French?"],
        ["reply in Dutch from now on"],
    ],
)
def test_a_model_for_english_says_that_it_does_not_translate(chat: list[str]) -> None:
    for at, said in enumerate(chat):
        assert untranslated(["en"], said, chat[:at]) == UNTRANSLATED
        assert untranslated([], said, chat[:at]) == ""


@pytest.mark.parametrize(
    "chat",
    [["I learn French", "and German?"], ["what is a big city in German history?"], ["she speaks French"], ["Spanish?"],
     ["I want to translate a book"], ["how do you say thank you in Italian?", "never mind", "German?"]],
)  # fmt: skip
def test_what_asks_for_no_translation_is_left_to_the_model(chat: list[str]) -> None:
    assert untranslated(["en"], chat[-1], chat[:-1]) == ""


@pytest.mark.parametrize(
    "text",
    [
        "forget that",
        "Please forget what I told you about me.",
        "delete my data",
        "can you forget everything?",
    ],
)
def test_who_asks_to_forget_is_told_how(text: str) -> None:
    assert "`hearth facts forget`" in forgetting(text)


def test_who_asks_in_vietnamese_is_told_so() -> None:
    assert forgetting("quên điều đó đi").startswith("Điều tôi")


@pytest.mark.parametrize(
    "text", ["forget it", "don't forget that", "I forget that", "forget that idea, try another"]
)
def test_other_messages_ask_to_forget_nothing(text: str) -> None:
    assert forgetting(text) == ""


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("what did I just say?", "You told me: “I like it.”"),
        ("What was my last message?", "You told me: “I like it.”"),
        ("what was my previous question?", "You told me: “who is Ann?”"),
        ("hm, what did I just ask you?", "You told me: “who is Ann?”"),
        ("mình vừa nói gì?", "Bạn đã nói: “I like it.”"),
        ("what did I say?", ""),
        ("what was my last job?", ""),
    ],
)
def test_the_message_before_is_told(asked: str, told: str) -> None:
    assert just_said(asked, ["hi", "who is Ann?", "I like it."]) == told
    assert just_said(asked, []) == ""


@pytest.mark.parametrize(
    "text", ["what's the news today?", "any news?", "Hey, tell me the latest news please"]
)
def test_there_are_no_news(text: str) -> None:
    assert abilities(text).startswith("I have no news")


def test_news_of_something_are_another_question() -> None:
    assert abilities("any news from Anna?") == abilities("I have news") == ""


@pytest.mark.parametrize("text", ["what's your name?", "Hi, what is your name", "what should I call you?"])
def test_it_has_no_name(text: str) -> None:
    assert abilities(text).startswith("I have no name")


@pytest.mark.parametrize(
    "text", ["what's your name for this dish?", "what should I call my cat?", "my name is Ann"]
)
def test_other_names_are_other_questions(text: str) -> None:
    assert abilities(text) == ""


@pytest.mark.parametrize(
    "text", ["can you call me Dan instead?", "Please call me Dan.", "Hi, just call me Dan!"]
)
def test_a_name_is_agreed_to(text: str) -> None:
    assert called(text) == "All right, Dan."


@pytest.mark.parametrize("text", ["call me on Friday", "can you call me Tuesday?", "call me later"])
def test_other_calls_are_left_to_the_model(text: str) -> None:
    assert called(text) == ""
