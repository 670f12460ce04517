from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.wiki.term_names import names_in


def test_the_term_comes_first_then_its_runs_of_words_the_longest_first() -> None:
    names = names_in("who made game of life?")
    assert names[0] == "who made game of life?"
    assert names.index("Game Of Life") < names.index("game of") < names.index("life")
    assert "who" not in names
    assert "of" not in names


def test_names_are_tried_with_capitals_and_without_a_possessive() -> None:
    assert names_in("lolcode") == ["lolcode", "Lolcode", "LOLCODE"]
    assert "befunge" in names_in("befunge's creator")


def test_what_no_title_can_have_is_not_asked_for() -> None:
    assert names_in("><>") == []
    assert "Brainfuck" in names_in("[[Brainfuck]]")
    assert names_in("x" * 300) == []


@given(st.text(max_size=300))
def test_a_request_has_room_for_the_names(term: str) -> None:
    names = names_in(term)
    assert len(names) == len(set(names)) <= 50
    assert len("|".join(names).encode("utf-8", "replace")) <= 4096
    assert not any(set(name) & set("#<>[]{}|\x1f") for name in names)
