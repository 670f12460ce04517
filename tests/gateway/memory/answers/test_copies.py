"""Replies that repeat earlier ones leave the prompts of small models."""

from __future__ import annotations

from gateway.memory.answers.copies import without_copies
from tests.gateway.memory.test_compose import line


def kept(*replies: str) -> list[int]:
    """Which exchanges stay."""
    texts = [text for number, reply in enumerate(replies) for text in (f"message {number}", reply)]
    messages = [line(seq, ("user", "assistant")[seq % 2], text) for seq, text in enumerate(texts)]  # type: ignore[arg-type]
    left = without_copies([*messages, line(len(texts), "user", "the last one")])
    assert left[-1].text == "the last one"
    return [message.seq // 2 for message in left if message.role == "assistant"]


def test_a_reply_that_begins_or_goes_on_like_an_earlier_one_is_left_out_with_its_message() -> None:
    family = "Theo and Marnie are a wonderful family."
    other = "Take the train to Leeds."
    assert kept(family, "Paint it in two coats.", f"{family} What else is there to say today?", other) == [
        0,
        1,
        3,
    ]
    assert kept(family, "Well, I think that Theo and Marnie are a wonderful family.", other) == [0, 2]


def test_what_was_repeated_twice_is_left_out_too() -> None:
    family = "Theo and Marnie are a wonderful family."
    assert kept(family, "Paint it in two coats.", family, family) == [1]


def test_a_reply_that_repeats_itself_is_left_out() -> None:
    assert kept("It rains a lot in May.", "They are so lucky to have you. " * 3, "Take the train.") == [0, 2]


def test_the_last_reply_may_be_a_new_version_of_a_text() -> None:
    letter = "Dear Gerald, please mend the damp in the bathroom."
    assert kept(letter, f"{letter} It has been there since the spring of last year. Yours, Rowena") == [0, 1]
    assert kept(letter, letter) == [0]
    assert kept(
        "Here it is.\n```\na = b + c + d + e\n```", "Shorter.\n```\na = b + c + d + e\n```", "Good."
    ) == [0, 1, 2]


def test_other_replies_stay() -> None:
    assert kept("It rains a lot in May.", "Take the train to Leeds.", "Yes.", "You are welcome.") == [
        0,
        1,
        2,
        3,
    ]
