"""Near-duplicate detection by sketches.

A sketch is the k smallest hashes of a text's shingles (runs of three words). The overlap of two sketches estimates
that of the texts (A. Broder, "On the resemblance and containment of documents", 1997, bottom-k variant).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from zlib import crc32

from gateway.wiki.source import PageRef

# Every byte above ASCII counts as a letter: word limits need not be exact, only the same for the same text.
_WORD = re.compile(rb"[0-9a-z_\x80-\xff]+")
_HASHES = 32
_MIN_SHINGLES = 8  # shorter texts, such as stubs, resemble each other by chance
_MAX_CHARACTERS = 100_000
# Share of common shingles from which two texts count as copies. A copy of 100 words with its name changed in three
# places scores 0.83; two pages made from one form with different contents score below 0.6.
_ALIKE = 0.8


def sketch(text: str) -> bytes:
    """The sketch of a page's text, at most 128 bytes; empty for a text that is too short."""
    words = _WORD.findall(text[:_MAX_CHARACTERS].casefold().encode("utf-8", "replace"))
    hashes = set(map(crc32, map(b" ".join, zip(words, words[1:], words[2:], strict=False))))
    if len(hashes) < _MIN_SHINGLES:
        return b""
    smallest = sorted(hashes)[:_HASHES]
    return struct.pack(f">{len(smallest)}I", *smallest)


def alike(first: bytes, second: bytes) -> bool:
    """Whether two texts are nearly the same, by their sketches."""
    if not first or not second:
        return False
    if first == second:
        return True
    one, other = set(_hashes(first)), set(_hashes(second))
    sample = sorted(one | other)[:_HASHES]
    common = sum(value in one and value in other for value in sample)
    return common >= _ALIKE * len(sample)


def distinct(ranked: Iterable[tuple[str, float, bytes]], limit: int) -> list[PageRef]:
    """The first ``limit`` pages of (title, score, sketch), without repeated titles and near-copies."""
    found: list[PageRef] = []
    sketches: dict[str, bytes] = {}
    for title, score, page_sketch in ranked:
        if len(found) >= limit:
            break
        if title not in sketches and not any(alike(page_sketch, other) for other in sketches.values()):
            sketches[title] = page_sketch
            found.append(PageRef(title, score))
    return found


def _hashes(packed: bytes) -> tuple[int, ...]:
    return struct.unpack(f">{len(packed) // 4}I", packed)
