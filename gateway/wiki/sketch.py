"""Telling near-copies apart from different pages without comparing their texts.

A sketch is the k smallest hashes of a text's shingles (runs of three words): a random sample of them that is the same
sample for every text, so the overlap of two sketches estimates that of the texts (A. Broder, "On the resemblance
and containment of documents", 1997, bottom-k variant).
"""

from __future__ import annotations

import re
import struct
from zlib import crc32

# Bytes above ASCII belong to letters: what is in between need not be exact, only the same for the same text.
_WORD = re.compile(rb"[0-9a-z_\x80-\xff]+")
_HASHES = 32
_FEWEST_SHINGLES = 8  # shorter texts are alike by chance: stubs, lists of one link
_MOST_CHARACTERS = 100_000  # the beginning of a very long page tells enough
# Share of common shingles from which two texts count as one. A copy of 100 words that calls itself by
# another name in three places keeps 0.83; two pages made from one form, with other contents, are below 0.6.
_ALIKE = 0.8


def sketch(text: str) -> bytes:
    """The sketch of a page's text, at most 128 bytes; empty for a text too short to be told from others."""
    words = _WORD.findall(text[:_MOST_CHARACTERS].casefold().encode("utf-8", "replace"))
    hashes = set(map(crc32, map(b" ".join, zip(words, words[1:], words[2:], strict=False))))
    if len(hashes) < _FEWEST_SHINGLES:
        return b""
    smallest = sorted(hashes)[:_HASHES]
    return struct.pack(f">{len(smallest)}I", *smallest)


def alike(first: bytes, second: bytes) -> bool:
    """Whether two sketches are of nearly the same text."""
    if not first or not second:
        return False
    if first == second:
        return True
    one, other = set(_hashes(first)), set(_hashes(second))
    sample = sorted(one | other)[:_HASHES]
    common = sum(value in one and value in other for value in sample)
    return common >= _ALIKE * len(sample)


class SeenTexts:
    """Which texts a list of results has already."""

    def __init__(self) -> None:
        self._sketches: list[bytes] = []

    def add(self, found: bytes) -> bool:
        """Whether no nearly equal text was added before; the text counts as there from now on."""
        if any(alike(found, other) for other in self._sketches):
            return False
        self._sketches.append(found)
        return True


def _hashes(packed: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(packed) // 4}I", packed)
