"""Where a reply ends that nobody has set a length for."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.memory.answers.length import LEAST_TOKENS, SMALL_TOKENS, ReplyEnd, reply_end
from gateway.models.catalog import ResolvedModel


def shown(soft: int, *pieces: str) -> tuple[str, bool]:
    """What is shown of pieces of a token each until the reply ends, and whether it was ended."""
    end, text = ReplyEnd(soft), ""
    for piece in pieces:
        text += end.take(piece, 1)
        if end.reached:
            break
    return text, end.reached


@pytest.mark.parametrize(
    ("pieces", "until"),
    [
        (["One.", " Two", " is", " more.", " Three"], "One. Two is more."),
        (["So", " we", " go", ".", "\n\n", "Then"], "So we go."),
        (["One", " two", " 3", ".5", " m. Four", " five"], "One two 3.5 m."),
        (["Things:", "\n1.", " Oats", "\n2", ".", " Milk"], "Things:\n1. Oats"),
        (["Two", " things:\n", "2", ".", " Milk", "\n3."], "Two things:\n2. Milk"),
        (["Call", " Dr", ".", " Li", " now!", " Or"], "Call Dr. Li now!"),
        (["She", " said", " “go”", " to", ' me."', " He"], 'She said “go” to me."'),
        (["You", " need", " this:", "\n", "- a pan", "\n", "- oil"], "You need this:\n- a pan"),
        (["一", "二", "三", "。", "四"], "一二三。"),
    ],
)
def test_it_ends_with_the_sentence_or_line_after_the_limit(pieces: list[str], until: str) -> None:
    assert shown(2, *pieces) == (until, True)


def test_code_is_not_divided_and_a_reply_that_ends_by_itself_is_not_ended() -> None:
    code = ["See", ":", "\n```\n", "a = 1.\n", "b = 2\n", "```", "\nDone", ". Now"]
    assert shown(2, *code) == ("See:\n```\na = 1.\nb = 2\n```", True)
    assert shown(2, "One", " two", " three.") == ("One two three.", False)
    assert shown(9, "One. ", "Two. ", "Three. ") == ("One. Two. Three. ", False)


@given(
    st.text(alphabet='ab1.!:`\n "”。', max_size=80),
    st.lists(st.integers(1, 9), max_size=40),
    st.integers(0, 9),
)
def test_what_is_shown_is_the_beginning_of_the_reply(text: str, lengths: list[int], soft: int) -> None:
    pieces, at = [], 0
    for length in [*lengths, 80]:
        pieces.append(text[at : at + length])
        at += length
    until, reached = shown(soft, *pieces)
    assert text.startswith(until)
    assert reached or until == text


def model(*, small: bool) -> ResolvedModel:
    return ResolvedModel(name="m", path=Path("m"), size_bytes=1, ram_bytes=1, context=4096, small=small)


def words_at(words_per_second: float, *, small: bool = True, chosen: int = 0) -> int:
    """Words of a reply that would go on, in sentences of three; 0 if nothing ends it."""
    now = 0.0
    end = reply_end(model(small=small), chosen, 20.0)
    if end is None:
        return 0
    end._clock = lambda: now
    text = ""
    for _ in range(end.most):
        for word in "It ", "goes ", "on. ":
            text += end.take(word, 1)
            now += 1 / words_per_second
            if end.reached:
                return len(text.split())
    raise AssertionError("it goes on")


def test_only_replies_of_small_models_are_ended_and_sooner_on_a_slow_machine() -> None:
    assert words_at(60.0, small=False) == 0
    assert SMALL_TOKENS <= words_at(60.0) <= SMALL_TOKENS + 3
    assert 100 <= words_at(5.0) <= 106, "20 s"
    assert LEAST_TOKENS <= words_at(0.5) <= LEAST_TOKENS + 3, "a sentence or two, however slow"
    assert 300 <= words_at(0.5, small=False, chosen=300) <= 303
