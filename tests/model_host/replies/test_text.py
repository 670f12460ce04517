"""Decoding of bytes and stop strings do not depend on how the input is cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from model_host.replies.markers import StopMatcher
from model_host.replies.reply import Reply, Text


@given(st.text(), st.lists(st.integers(1, 5), min_size=1))
def test_any_cut_of_utf8_gives_the_text_back(text: str, sizes: list[int]) -> None:
    raw = text.encode("utf-8", "surrogatepass")
    expected = raw.decode("utf-8", "replace")
    reply, pieces, start, turn = Reply(), [], 0, 0
    while start < len(raw):
        size = sizes[turn % len(sizes)]
        pieces += reply.push(7, raw[start : start + size])
        start, turn = start + size, turn + 1
    pieces += reply.finish(ended=True)
    assert "".join(piece.text for piece in pieces if isinstance(piece, Text)) == expected


@given(
    st.text("ab<>", max_size=40),
    st.lists(st.text("ab<>", min_size=1, max_size=5), max_size=4),
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
)
def test_stop_strings_cut_at_the_first_match_however_text_arrives(
    text: str, stops: list[str], sizes: list[int]
) -> None:
    hits = [text.find(stop) for stop in stops if stop in text]
    expected = text[: min(hits)] if hits else text
    # Text shown before a longer match completed cannot be taken back: with overlapping stop strings the first to be
    # completed wins, which depends on how the text is cut.
    matcher, shown = StopMatcher(stops), ""
    start, turn = 0, 0
    while start < len(text) and matcher.matched is None:
        size = sizes[turn % len(sizes)]
        shown += matcher.push(text[start : start + size])
        start, turn = start + size, turn + 1
    if matcher.matched is None:
        shown += matcher.flush()
    assert text.startswith(shown)
    assert not any(stop in shown for stop in stops)
    if not hits:
        assert shown == expected
    else:
        assert matcher.matched is not None
        assert len(shown) >= len(expected)
