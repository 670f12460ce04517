"""Syntax trees of GBNF, llama.cpp's language; line breaks are allowed between any two symbols."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Listed

from msgspec import Struct

MAX_CODE_POINT = 0x10FFFF
MAX_REPETITION = 2000  # llama.cpp's own limit
SURROGATES = (0xD800, 0xDFFF)  # do not occur in UTF-8

# Code points, both ends included.
Range = tuple[int, int]


class GrammarError(ValueError):
    """The grammar or JSON schema cannot be used."""


class Literal(Struct, frozen=True):
    """Exactly this text."""

    text: str


class Characters(Struct, frozen=True):
    """One character of a set, given as sorted ranges that do not touch."""

    ranges: tuple[Range, ...]


class Token(Struct, frozen=True):
    """The token of this id; ``negated``: any other token with text."""

    number: int
    negated: bool = False


class Reference(Struct, frozen=True):
    rule: str


class Concatenation(Struct, frozen=True):
    """One item after the other; without items, the empty text."""

    items: tuple[Node, ...]


class Alternatives(Struct, frozen=True):
    """One of several items."""

    items: tuple[Node, ...]


class Repeat(Struct, frozen=True):
    """An item repeated from ``least`` to ``most`` times; None means any number of times."""

    item: Node
    least: int = 0
    most: int | None = None


Node = Literal | Characters | Token | Reference | Concatenation | Alternatives | Repeat
Rules = dict[str, Node]


def row(*items: Node | str) -> Node:
    """Concatenate items; a string stands for its text."""
    nodes = tuple(Literal(item) if isinstance(item, str) else item for item in items)
    return nodes[0] if len(nodes) == 1 else Concatenation(nodes)


def either(items: Iterable[Node]) -> Node:
    nodes = tuple(items)
    return nodes[0] if len(nodes) == 1 else Alternatives(nodes)


def optional(*items: Node | str) -> Node:
    """The items one after the other, or nothing."""
    return Repeat(row(*items), 0, 1)


def joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Sort and merge ranges, and take out surrogates."""
    low, high = SURROGATES
    pieces = [
        piece
        for first, last in ranges
        for piece in ((first, min(last, low - 1)), (max(first, high + 1), last))
        if piece[0] <= piece[1]
    ]
    made: list[Range] = []
    for first, last in sorted(pieces):
        if made and first <= made[-1][1] + 1:
            made[-1] = (made[-1][0], max(made[-1][1], last))
        else:
            made.append((first, last))
    return tuple(made)


def others(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """All characters except those in ``ranges``, and except NUL."""
    made: list[Range] = []
    at = 1
    for first, last in joined([*ranges, SURROGATES]):
        made.append((at, first - 1))
        at = max(at, last + 1)
    return joined([*made, (at, MAX_CODE_POINT)])


def within(ranges: Listed[Range], bounds: Listed[Range]) -> tuple[Range, ...]:
    """The characters that are in both sets."""
    return joined((max(a, c), min(b, d)) for a, b in ranges for c, d in bounds)


ANYTHING = others([])
