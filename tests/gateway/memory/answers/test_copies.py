"""The prompts of small models begin after the last reply that was repeated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gateway.memory.answers.copies import since_copies
from gateway.store.stop_words import speaks
from tests.gateway.memory.test_compose import line

FAMILY = "Theo and Marnie are a wonderful family."
PAINT = "Paint it in two coats."
TRAIN = "Take the train to Leeds."


def kept(
    *replies: str, asked: str = "message", spoken: Callable[[str], bool] = lambda reply: True
) -> list[int]:
    """Which exchanges stay."""
    texts = [text for number, reply in enumerate(replies) for text in (f"{asked} {number}", reply)]
    messages = [line(seq, ("user", "assistant")[seq % 2], text) for seq, text in enumerate(texts)]  # type: ignore[arg-type]
    left = since_copies([*messages, line(len(texts), "user", "the last one")], spoken)
    assert left[0].role == "user"
    assert left[-1].text == "the last one"
    return [message.seq // 2 for message in left if message.role == "assistant"]


def test_what_is_repeated_is_left_out_with_all_before_it() -> None:
    assert kept(PAINT, FAMILY, TRAIN, f"{FAMILY} What else is there to say?") == []
    assert kept(FAMILY, "Well, I think that Theo and Marnie are a wonderful family.", TRAIN) == [2]
    assert kept(PAINT, FAMILY, f"Yes. {FAMILY}", FAMILY[:-1], TRAIN) == [4]
    assert kept(PAINT, FAMILY, FAMILY, FAMILY) == [3]  # the same to the letter


def test_a_reply_that_repeats_itself_is_left_out_too() -> None:
    assert kept(PAINT, "They are so lucky to have you. " * 3, TRAIN) == [2]
    assert kept(PAINT, "They are so lucky to have you. " * 3) == []


def test_a_new_version_that_was_asked_for_stays() -> None:
    letter = "Dear Gerald, please mend the damp in the bathroom."
    longer = f"{letter} It has been there since spring. Yours, Rowena"
    assert kept(TRAIN, letter, longer, asked="make it longer") == [2]
    assert kept(TRAIN, letter, longer, asked="i went swimming") == []


def test_a_language_that_the_model_does_not_speak_is_left_out() -> None:
    gibberish = "Người ta mua vào dại chúc bông cho."
    assert kept(PAINT, gibberish, TRAIN, spoken=partial(speaks, ["en"])) == [2]
    assert kept(PAINT, gibberish, TRAIN) == [0, 1, 2]


def test_other_replies_stay() -> None:
    code = "\n```\na = b + c + d + e + f\n```"
    assert kept(
        f"Here it is.{code}", f"It is shorter now.{code}", "You are welcome!", TRAIN, "You are welcome!"
    ) == [*range(5)]
