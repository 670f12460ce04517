"""Sets of characters as automata over the bytes of UTF-8."""

from __future__ import annotations

from model_host.grammar.gbnf.syntax import Range

DONE = -1  # the character is complete

# What leads on: from the first byte to the second, both included, to another node.
Edge = tuple[int, int, int]

_LAST_OF_LENGTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)
_ByteRanges = tuple[Range, ...]  # one range a byte of the character


class Utf8:
    """Builds automata; those that are alike are the same."""

    def __init__(self) -> None:
        self.edges: list[tuple[Edge, ...]] = []
        self._nodes: dict[tuple[_ByteRanges, ...], int] = {}
        self._roots: dict[tuple[Range, ...], int] = {}

    def root(self, ranges: tuple[Range, ...]) -> int:
        """The node where a character of the set begins. The ranges hold no surrogates."""
        known = self._roots.get(ranges)
        if known is None:
            sequences = tuple(sequence for first, last in ranges for sequence in _split(first, last))
            known = self._roots[ranges] = self._node(sequences)
        return known

    def _node(self, sequences: tuple[_ByteRanges, ...]) -> int:
        known = self._nodes.get(sequences)
        if known is not None:
            return known
        # In sorted order the first ranges of two sequences are the same, or have no byte in common.
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
    """Code points as ranges of bytes, the last of which may vary freely wherever one before it does."""
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
