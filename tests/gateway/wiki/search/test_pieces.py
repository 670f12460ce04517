from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gateway.wiki.search.vectors import MOST_CHARACTERS, cut, passages
from gateway.wiki.source import Section

TEXT = st.text(st.sampled_from("ab c.\n日€"), max_size=5000) | st.text(max_size=300)


def section(text: str, heading: str = "") -> Section:
    return Section(heading, heading, 1, text)


@given(st.lists(TEXT, max_size=4))
def test_every_word_is_in_a_passage_and_none_is_too_long(texts: list[str]) -> None:
    made = passages("Page", [section(text) for text in texts])
    for index, text in enumerate(texts):
        mine = "".join("".join(piece.text.split()) for piece in made if piece.mark == index)
        assert mine == "".join(text.split())
    assert all(0 < len(piece.text) <= MOST_CHARACTERS + 2 for piece in made)
    assert [piece.mark for piece in made] == sorted(piece.mark for piece in made)


@given(TEXT, st.integers(2, 50))
def test_cuts_lose_nothing(text: str, size: int) -> None:
    parts = list(cut(text, size))
    assert "".join("".join(part.split()) for part in parts) == "".join(text.split())
    assert all(len(part) <= size for part in parts)


def test_paragraphs_stay_whole_and_sections_apart() -> None:
    first, second = ("One. " * 120).strip(), ("Two. " * 120).strip()
    sections = [section(f"{first}\n\nshort\n\n{second}"), section(""), section("end", "The end")]
    assert [(piece.mark, piece.title, piece.text) for piece in passages("Page", sections)] == [
        (0, "Page", f"{first}\n\nshort"),
        (0, "Page", second),
        (2, "Page - The end", "end"),
    ]


def test_long_text_is_cut_behind_lines_sentences_and_words() -> None:
    assert list(cut("aaaa bb\ncccc dddd", 10)) == ["aaaa bb", "cccc dddd"]
    assert list(cut("One two. Three four five", 12)) == ["One two.", "Three four", "five"]
    assert list(cut("x" * 25, 10)) == ["x" * 10, "x" * 10, "x" * 5]
