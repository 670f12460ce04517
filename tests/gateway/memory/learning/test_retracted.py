"""Messages that take back the one before, and those that only look like it."""

from __future__ import annotations

import pytest

from gateway.memory.learning.retracted import is_joke, takes_back

TAKEN_BACK = [
    ("I sold the bike", "just kidding, I still have it"),
    ("I sold the bike", "lol jk"),
    ("mình bán xe rồi", "đùa thôi chưa bán"),
    ("mình bán xe rồi", "haha mình giỡn á"),
    ("mình ở Huế", "à nhầm, ở Hội An"),
    ("I live in Bonn", "no wait, Cologne"),
    ("I live in Bonn", "Scratch that."),
    ("I hate horror", "ok maybe not hate, I just don't like gore"),
    ("I love jazz", "not really love, I like it"),
    ("I'm allergic to shellfish", "wait thats my sister not me"),
]
KEPT = [
    ("I live in Bonn", "not really"),  # the answer to a question of the assistant
    ("I live in Bonn", "maybe not today"),
    ("I live in Bonn", "are you kidding?"),
    ("I live in Bonn", "you're joking"),
    ("I live in Bonn", "wait, what do you mean?"),
    ("I live in Bonn", "my brother was joking about it"),
    ("I live in Bonn", "that's wrong, Bonn is on the Rhine"),  # about what the assistant said
    ("mình ở Huế", "mình nhầm đường nên về trễ"),
    ("mình ở Huế", "đùa với mèo vui lắm"),
    ("mình ở Huế", "kể chuyện cười đi"),
]


@pytest.mark.parametrize(("before", "text"), TAKEN_BACK)
def test_a_message_takes_back_the_one_before(before: str, text: str) -> None:
    assert takes_back(text, before)


@pytest.mark.parametrize(("before", "text"), KEPT)
def test_other_messages_take_nothing_back(before: str, text: str) -> None:
    assert not takes_back(text, before)


def test_a_mistake_is_no_joke() -> None:
    assert is_joke("đùa thôi") and is_joke("I'm just kidding!")
    assert not is_joke("no wait, Cologne")
