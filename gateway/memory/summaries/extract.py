"""Pick sentences verbatim from a text that could not be summarized. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator

from gateway.memory.summaries.items import Sentences, items

_GAP = "…"
# A longer sentence is cut at a space, so that text without punctuation does not take all the room.
_LONGEST = 300
_PIECE = re.compile(rf"\S(?:.{{0,{_LONGEST - 2}}}\S(?!\S)|.{{0,{_LONGEST - 1}}})", re.S)


def extract(text: str, most: int, cost: Callable[[str], int]) -> str:
    """Sentences of ``text``, in order, that together ``cost`` at most ``most``; ``…`` marks the gaps.

    The first and last two have priority, then those with the most names, numbers and identifiers that no later
    sentence repeats. "" when not even one sentence fits.
    """
    pieces = list(_pieces(text))
    room = most - 2 * cost(_GAP)
    kept: set[int] = set()
    for number in _by_weight(text, pieces):
        begin, end = pieces[number]
        needed = cost(text[begin:end]) + cost(_GAP)
        if needed <= room:
            room -= needed
            kept.add(number)
        if room <= 2 * cost(_GAP):
            break
    return _joined(text, pieces, sorted(kept))


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    for begin, end in Sentences(text).spans:
        for match in _PIECE.finditer(text, begin, end):
            yield match.span()


def _by_weight(text: str, pieces: list[tuple[int, int]]) -> list[int]:
    """Numbers of the pieces, most important first."""
    begins = [begin for begin, _ in pieces]
    said = Counter(max(0, bisect_right(begins, place) - 1) for place in items(text).places.values())
    last = len(pieces) - 1
    ends = dict.fromkeys(number for number in (0, last, 1, last - 1) if 0 <= number <= last)
    others = sorted(
        (number for number in range(len(pieces)) if number not in ends),
        key=lambda number: (-said[number], -number),
    )
    return [*ends, *others]


def _joined(text: str, pieces: list[tuple[int, int]], kept: list[int]) -> str:
    parts: list[str] = []
    before = -1
    for number in kept:
        if number != before + 1:
            parts.append(_GAP)
        begin, end = pieces[number]
        parts.append(text[begin:end])
        before = number
    if kept and before != len(pieces) - 1:
        parts.append(_GAP)
    return " ".join(parts)
