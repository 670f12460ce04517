from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.wiki.search.term_names import names_in


def test_the_term_comes_first_then_its_runs_of_words_the_longest_first() -> None:
    names = names_in("who made game of life?")
    assert names[0] == "Who made game of life?"
    assert names.index("Game Of Life") < names.index("Made game") < names.index("Life")
    assert not {"Who", "Of", "Game of"} & set(names)


def test_short_names_of_a_long_term_stay() -> None:
    words = [f"word{number}" for number in range(40)]
    names = names_in(" ".join(words))
    assert len(names) == 50
    assert "WORD39" not in names
    assert {f"Word{number}" for number in range(20)} < set(names)


def test_names_are_tried_with_capitals_and_without_a_possessive() -> None:
    assert names_in("lolcode") == ["Lolcode", "LOLCODE"]
    assert "Befunge" in names_in("befunge's creator")
    assert names_in("turing tarpit")[:2] == ["Turing tarpit", "Turing Tarpit"]


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
