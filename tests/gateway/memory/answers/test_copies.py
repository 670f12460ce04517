"""The prompts of small models begin after the last reply that was repeated."""

from __future__ import annotations

import msgspec

from gateway.memory.answers.copies import since_copies, stand_in
from tests.gateway.memory.test_compose import line

FAMILY = "Theo and Marnie are a wonderful family."
PAINT = "Paint it in two coats."
TRAIN = "Take the train to Leeds."


def kept(*replies: str) -> list[int]:
    """Which exchanges stay."""
    texts = [text for number, reply in enumerate(replies) for text in (f"message {number}", reply)]
    messages = [line(seq, ("user", "assistant")[seq % 2], text) for seq, text in enumerate(texts)]  # type: ignore[arg-type]
    left = since_copies([*messages, line(len(texts), "user", "the last one")])
    assert left[0].role == "user"
    assert left[-1].text == "the last one"
    return [message.seq // 2 for message in left if message.role == "assistant"]


def test_what_is_repeated_later_is_left_out_with_all_before_it() -> None:
    assert kept(PAINT, FAMILY, TRAIN, f"{FAMILY} What else is there to say?") == [2, 3]
    assert kept(FAMILY, TRAIN, "Well, I think that Theo and Marnie are a wonderful family.") == [1, 2]
    assert kept(PAINT, FAMILY, FAMILY, FAMILY) == [3]


def test_a_reply_that_repeats_itself_is_left_out_too() -> None:
    assert kept(PAINT, "They are so lucky to have you. " * 3, TRAIN) == [2]
    assert kept(PAINT, "They are so lucky to have you. " * 3) == []


def test_the_newest_version_of_a_text_stays() -> None:
    letter = "Dear Gerald, please mend the damp in the bathroom."
    assert kept(TRAIN, letter, f"{letter} It has been there since spring. Yours, Rowena") == [2]


def test_a_language_that_the_model_does_not_speak_is_left_out() -> None:
    spoken = [
        line(seq, ("user", "assistant")[seq % 2], text) for seq, text in enumerate(["hi", PAINT, "hm", TRAIN])
    ]  # type: ignore[arg-type]
    gibberish = [
        line(4, "user", "hello in Vietnamese?"),
        line(5, "assistant", "Người ta mua vào dại chúc bông cho."),
    ]
    last = line(6, "user", "and now?")
    assert since_copies([*spoken, *gibberish, last], ["en"]) == [last]
    assert len(since_copies([*spoken, *gibberish, last])) == 7
    assert len(since_copies([*spoken, last], ["en"])) == 5


def test_people_s_lines_stand_in_for_what_is_left_out() -> None:
    bakery, club = "My sister Imke has a bakery in Frome.", "I booked the rowing club for 240 pounds."
    said = [bakery, FAMILY, club, FAMILY, "hm", FAMILY, "who has a bakery?"]
    talk = [line(seq, ("user", "assistant")[seq % 2], text) for seq, text in enumerate(said)]  # type: ignore[arg-type]
    talk[2] = msgspec.structs.replace(talk[2], speaker="Nora")
    shown = since_copies(talk)
    assert [each.seq for each in shown] == [4, 5, 6]
    assert stand_in(talk, shown, 100) == f"Ann: {bakery}\nNora: {club}"
    assert stand_in(talk, talk, 100) == ""
    assert stand_in(talk, shown, 1) == ""
    talk[0] = msgspec.structs.replace(talk[0], summarized_by=1)
    assert stand_in(talk, shown, 100) == f"Nora: {club}"


def test_other_replies_stay() -> None:
    code = "\n```\na = b + c + d + e + f\n```"
    assert kept(
        f"Here it is.{code}", f"It is shorter now.{code}", "You are welcome!", TRAIN, "You are welcome!"
    ) == [*range(5)]
