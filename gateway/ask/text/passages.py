"""Cuts page text into passages, the units that are shown, cited, dropped and checked against.

Prose is cut between sentences. Code, tables and lists are cut between lines and keep their white space.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from gateway.ask.text.sentences import sentences

# A sentence or line is cut inside only if it exceeds the passage size by this factor.
_LONGEST = 3
_PROSE_WORD = re.compile(r"[^\W\d_]{2,}")
_LEAST_PROSE_WORDS = 4
_LIST_ITEM = re.compile(r"(?:[-*#•]|\d+[.)])[ \t]")


class TextUnit(Struct, frozen=True):
    """A sentence or a line. ``gap`` counts the line breaks before a verbatim line; ``new`` begins a paragraph."""

    text: str
    verbatim: bool
    gap: int = 1
    new: bool = False


class Passage(Struct, frozen=True):
    """A piece of a section. ``section`` is its index in the page; ``first`` marks a section's first passage."""

    section: int
    text: str
    verbatim: bool
    first: bool


def text_units(text: str) -> list[TextUnit]:
    """Split a section's text into sentences of prose and verbatim lines."""
    units: list[TextUnit] = []
    gap, new = 1, True
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if not line.strip():
            gap, new = gap + 1, True
            continue
        if new and _is_prose(line, alone=index + 1 == len(lines) or not lines[index + 1].strip()):
            found = sentences(line)
            units += [TextUnit(each, False, 1, not number) for number, each in enumerate(found)]
        else:
            units.append(TextUnit(line, True, gap, new))
        gap, new = 1, False
    return units


def _is_prose(line: str, alone: bool) -> bool:
    """Whether a line is a paragraph; one that other lines follow must also end like a sentence."""
    if line[0].isspace() or _LIST_ITEM.match(line) or " | " in line:
        return False
    if len(_PROSE_WORD.findall(line)) < _LEAST_PROSE_WORDS:
        return False
    return alone or line.rstrip()[-1] in ".:!?…\"'”)"


def cut_long(units: Sequence[TextUnit], counts: Sequence[int], limit: int) -> list[tuple[TextUnit, int]]:
    """Pair units with their token counts, and cut those far over ``limit`` tokens into pieces of about that size.

    The counts of pieces are estimates. The pieces joined are the unit.
    """
    found: list[tuple[TextUnit, int]] = []
    for unit, count in zip(units, counts, strict=True):
        if count <= _LONGEST * limit:
            found.append((unit, count))
            continue
        pieces = _cut(unit.text, max(1, len(unit.text) * limit // count))
        share = -(-count // len(pieces))
        first, *rest = (TextUnit(piece, unit.verbatim, 1, True) for piece in pieces)
        found.append((TextUnit(first.text, unit.verbatim, unit.gap, unit.new), share))
        found += [(piece, share) for piece in rest]
    return found


def _cut(text: str, size: int) -> list[str]:
    """Cut into pieces of at most ``size`` characters, after a space in the second half if there is one."""
    pieces = []
    while len(text) > size:
        space = text.rfind(" ", size // 2, size)
        end = size if space < 0 else space + 1
        pieces.append(text[:end])
        text = text[end:]
    return [*pieces, text]


def group(section: int, units: Sequence[tuple[TextUnit, int]], limit: int) -> list[Passage]:
    """Group units into passages of about ``limit`` tokens, apart by paragraph and by prose or verbatim."""
    passages: list[Passage] = []
    current: list[TextUnit] = []
    size = 0
    for unit, count in units:
        splits = current and (current[-1].verbatim != unit.verbatim or (unit.new and not unit.verbatim))
        if current and (size + count > limit or splits):
            passages.append(_passage(section, current, not passages))
            current, size = [], 0
        current.append(unit)
        size += count
    if current:
        passages.append(_passage(section, current, not passages))
    return passages


def _passage(section: int, units: list[TextUnit], first: bool) -> Passage:
    verbatim = units[0].verbatim
    if verbatim:
        text = units[0].text + "".join("\n" * unit.gap + unit.text for unit in units[1:])
    else:
        text = " ".join(" ".join(unit.text.split()) for unit in units)
    return Passage(section, text, verbatim, first)
