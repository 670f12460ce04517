"""GBNF as a tree. The language is llama.cpp's; line breaks may stand anywhere between two symbols."""

from __future__ import annotations

from dataclasses import dataclass

MAX_CODE_POINT = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)  # in no UTF-8 text

# Code points from the first to the second, both included.
Range = tuple[int, int]


class GrammarError(ValueError):
    """The grammar or JSON schema cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Literal:
    """Exactly this text."""

    text: str


@dataclass(frozen=True, slots=True)
class Characters:
    """One character of a set; the ranges are in order and do not touch."""

    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Token:
    """One token of the vocabulary, by its number or its spelling such as ``<end>``; ``negated``: any other one."""

    name: int | str
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Reference:
    """What another rule stands for."""

    rule: str


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One thing after the other; empty: nothing."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of several things."""

    alternatives: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The same thing from ``least`` to ``most`` times; None: any number of times."""

    item: Node
    least: int
    most: int | None


Node = Literal | Characters | Token | Reference | Concatenation | Alternatives | Repeat
Rules = dict[str, Node]


def joined(ranges: list[Range]) -> tuple[Range, ...]:
    """The ranges in order, without overlaps and without surrogates."""
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


def others(ranges: list[Range]) -> tuple[Range, ...]:
    """All other characters but NUL, which is none that anybody wants."""
    made: list[Range] = []
    at = 1
    for first, last in joined([*ranges, SURROGATES]):
        if at < first:
            made.append((at, first - 1))
        at = max(at, last + 1)
    if at <= MAX_CODE_POINT:
        made.append((at, MAX_CODE_POINT))
    return joined(made)


ANYTHING = others([])
