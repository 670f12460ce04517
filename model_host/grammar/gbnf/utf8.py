"""Compiles sets of characters to automata over UTF-8 bytes."""

from __future__ import annotations

from model_host.grammar.gbnf.syntax import Range

DONE = -1  # the character is complete

# First and last byte, both included, and the node that they lead to.
Edge = tuple[int, int, int]

_LAST_OF_LENGTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)
_ByteRanges = tuple[Range, ...]  # one range a byte of the character


class Utf8:
    """Automata that share equal nodes. ``edges`` has those of each node."""

    def __init__(self) -> None:
        self.edges: list[tuple[Edge, ...]] = []
        self._nodes: dict[tuple[_ByteRanges, ...], int] = {}

    def root(self, ranges: tuple[Range, ...]) -> int:
        """The node at which a character of the set begins. ``ranges`` must not contain surrogates."""
        return self._node(tuple(sequence for first, last in ranges for sequence in _split(first, last)))

    def _node(self, sequences: tuple[_ByteRanges, ...]) -> int:
        known = self._nodes.get(sequences)
        if known is not None:
            return known
        # The sequences are sorted, so the first ranges of two of them are equal or disjoint.
        rests: dict[Range, list[_ByteRanges]] = {}
        for sequence in sequences:
            rests.setdefault(sequence[0], []).append(sequence[1:])
        edges = tuple(
            (low, high, self._node(tuple(rest)) if rest[0] else DONE) for (low, high), rest in rests.items()
        )
        self.edges.append(edges)
        self._nodes[sequences] = len(self.edges) - 1
        return len(self.edges) - 1


def _split(first: int, last: int) -> list[_ByteRanges]:
    """Split code points into sequences of byte ranges whose combinations are exactly their encodings."""
    for limit in _LAST_OF_LENGTH:
        if first <= limit < last:
            return _split(first, limit) + _split(limit + 1, last)
    low, high = chr(first).encode(), chr(last).encode()
    for shift in range(6, 6 * len(low), 6):
        rest = (1 << shift) - 1
        if first & ~rest != last & ~rest:
            if first & rest:
                return _split(first, first | rest) + _split((first | rest) + 1, last)
            if last & rest != rest:
                return _split(first, (last & ~rest) - 1) + _split(last & ~rest, last)
    return [tuple(zip(low, high, strict=True))]
