"""Summaries of pasted texts in their own sentences."""

from __future__ import annotations

import pytest

from gateway.memory.answers.gist import gist_answer

MOVE = (
    "Hi all, the office move is planned for 12 March. Please pack your desks by the evening before. Boxes are in the "
    "kitchen. The IT team will move the computers. If you work from home on the day of the move, tell Rosa by Friday. "
    "Parking at the new office is free."
)


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        (f"Can you please summarize this email for me:\n{MOVE}", ["for 12 March", "move the computers"]),
        (f"sum up in one sentence: {MOVE}", ["planned for 12 March"]),
        (
            f"write a short summary of this text in 3 sentences: {MOVE}",
            ["for 12 March", "computers", "tell Rosa"],
        ),
        ("sum up: Mr. J. Smith is back. He was away.", ["Mr. J. Smith is back."]),
        ("tl;dr: The shop is closed. It opens at nine.", ["The shop is closed."]),
    ],
)
def test_the_most_telling_sentences_stand_for_a_text(asked: str, kept: list[str]) -> None:
    told = gist_answer(asked)
    assert all(words in told for words in kept)
    assert len(told) < len(asked)


@pytest.mark.parametrize(
    "asked",
    [
        "summarize our chat",
        "summarize the book Moby Dick",
        "summarize: only one sentence here.",
        "a summary: A. B.",
        "",
    ],
)
def test_what_has_no_text_to_summarize_is_left_to_the_model(asked: str) -> None:
    assert gist_answer(asked) == ""
