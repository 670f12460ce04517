"""Cuts page text into passages, the units that are ranked, shown, cited and checked against.

Prose is cut between sentences, code between lines, and a table between rows, each with the table's header. A list
stays whole unless it is long. Code, tables and lists keep their white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, takewhile
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from gateway.ask.text.sentences import sentences
from gateway.base.patterns import any_case

# A sentence or line is cut inside only if it exceeds the passage size by this factor.
_LONGEST = 3
# A list is cut only if it exceeds the passage size by this factor, and a list or code only then from the sentence
# before it that ends in a colon.
_LONGEST_LIST = 2
_LONGEST_TERM = 60  # characters of a line that the next paragraph is about
_BYTES_A_TOKEN = 4  # of English
_PROSE_WORD = re.compile(r"[^\W\d_]{2,}")
_LEAST_PROSE_WORDS = 4
_LIST_ITEM = re.compile(r"\s*(?:[-*#•]|\d+[.)])[ \t](?!\| )")  # a row may begin with the sign "-"
CELLS = " | "
# A line that other lines follow, but no code.
_SHORT_SENTENCE = re.compile(r"[^\W\d_][\w\s,'’-]*[.!?:]")
# The first row of a table with this many columns is its header, never a statement of its own.
_COLUMNS_WITH_HEADER = 3
_MOST_NAMING = 4  # words of the name of a column

# A sentence about the text says nothing about its subject.
ABOUT_TEXT = any_case(
    r"(?:in )?(?:this|the (?:next|following|above|previous)|these|here) "
    r"(?:chapters?|sections?|pages?|documents?|manual|guide|tutorial|appendix|articles?|tables?|figures?|part|"
    r"is a list)\b"
)
# Years, numbers and names in a reference to a book, or in the date of the page, are not those of its subject.
REFERENCE = any_case(r"\[[^\]]{4,}\][\W_]*\Z|(?:last|page) (?:updated|changed|modified|edited|reviewed)\b")
_SENTENCE_END = re.compile(r"[.?!…:。][\"'”’)\]]*\s*\Z")
_CODE_SIGNS = re.compile(r"[{}\\]|\w\([\"']|==|;\s*\Z")
_LONGEST_ITEM = 400  # characters of a list's item that is one line
_TERM = re.compile(r"\s*(?:[-*#•]|\d+[.)])[ \t]([^:\n]{2,60}): ")
_CAPTION = any_case(r"(?:figure|fig\.|table|example|listing) [0-9]")

TextKind = Literal["prose", "list", "table", "code"]


class TextUnit(Struct, frozen=True):
    """A sentence or a line. ``gap`` counts the line breaks before it, and ``lead`` is the white space behind these.

    ``new`` begins a paragraph. ``item`` is a sentence of a list's item, behind its first one.
    """

    text: str
    kind: TextKind
    gap: int = 1
    new: bool = False
    lead: str = ""
    item: bool = False


class Passage(Struct, frozen=True):
    """A piece of a section, by its index in the page. ``header`` is the first row of the table that it is a row of.

    ``more`` is the rest of the paragraph or list that it was cut from, or the code behind it; only quotations have it.
    ``term`` begins the item of a list that the passage continues.
    """

    section: int
    text: str
    header: str = ""
    code: bool = False
    more: str = ""
    term: str = ""


def estimated_tokens(text: str) -> int:
    """Estimate the tokens of a text without the model's tokenizer."""
    return -(-len(text.encode("utf-8", "replace")) // _BYTES_A_TOKEN)


def cut_section(section: int, text: str, limit: int) -> list[Passage]:
    """Cut the text of the section with this index into passages of about ``limit`` tokens."""
    units = [piece for unit in text_units(text) for piece in _cut_long(unit, limit)]
    found: list[Passage] = []
    led = False  # lines behind a colon
    before: TextKind | None = None
    for kind, run in groupby(units, key=_run_kind):
        rows = list(run)
        example = kind == "code" and (len(rows) > 1 or rows[-1] is units[-1])
        if example and before == "prose" and not found[-1].more:
            found[-1] = replace(found[-1], more=joined(rows))
        before = kind
        led_here, led = led, False
        if kind == "table" and len(rows) > 1:
            header = rows[0].text
            first = header.count(CELLS) + 1 >= _COLUMNS_WITH_HEADER
            found += [Passage(section, row.text, header) for row in rows[first:]]
        else:
            whole = kind == "list" and sum(_size(row) for row in rows) <= _LONGEST_LIST * limit
            groups = list(group(rows, _LONGEST_LIST * limit if whole else limit))
            term = ""
            for index, units_here in enumerate(groups):
                text = joined(units_here)
                here = term if units_here[0].item else ""
                term = next((_term(each.text) for each in units_here[::-1] if each.kind == "list"), term)
                later = takewhile(
                    lambda each: not (each.new and each.kind == "prose"), chain(*groups[index + 1 :])
                )
                rest = list(later) if kind in ("prose", "list") else []
                code = kind == "code" and not _SHORT_SENTENCE.fullmatch(text.rpartition("\n")[2])
                introduced = bool(found) and kind != "prose" and introduces(found[-1].text, kind)
                led = led or introduced
                if introduced and estimated_tokens(found[-1].text + text) <= _LONGEST_LIST * limit:
                    text = f"{found.pop().text}\n{text}"
                elif introduced and not index:
                    found[-1] = replace(found[-1], more=joined(rows))
                elif found and kind == "prose" and not led_here and _is_term(found[-1]):
                    text = f"{found.pop().text}\n\n{text}"
                more = joined(rest) if rest else ""
                found.append(Passage(section, text, code=code, more=more, term=here))
    return found


def _run_kind(unit: TextUnit) -> TextKind:
    return "list" if unit.item else unit.kind


def introduces(text: str, kind: TextKind) -> bool:
    """Whether lines of a kind continue a text: behind a colon, and a list also behind a line without a full stop."""
    unfinished = text[-1:].isalnum() and "\n" not in text and CELLS not in text
    return text.endswith(":") or (kind == "list" and unfinished)


def names_columns(row: str) -> bool:
    """Whether the first row of a table names its columns, and is not the first of keys with their meanings."""
    cells = row.split(CELLS)
    return len(cells) >= _COLUMNS_WITH_HEADER or all(len(cell.split()) <= _MOST_NAMING for cell in cells)


def _is_term(passage: Passage) -> bool:
    """Whether a passage is a short line by itself, such as the option that the next paragraph describes."""
    return passage.code and "\n" not in passage.text and len(passage.text) <= _LONGEST_TERM


def _term(item: str) -> str:
    """What an item of a list is about, if that is a few words with a colon."""
    found = _TERM.match(item)
    return found[1] if found else ""


def text_units(text: str) -> list[TextUnit]:
    """Split a section's text into sentences of prose and lines of lists, tables and code.

    A long item of a list, and a paragraph that continues one, are split into their sentences, too.
    """
    units: list[TextUnit] = []
    gap, new = 1, True
    lines = text.split("\n")
    for index, line in enumerate(lines):
        if not line.strip():
            gap, new = gap + 1, True
            continue
        kind, begun = _line_kind(line), line.lstrip()
        indent = line[: len(line) - len(begun)]
        in_item = bool(units) and (units[-1].kind == "list" or units[-1].item)
        if new and _is_prose(line, alone=index + 1 == len(lines) or not lines[index + 1].strip()):
            found = sentences(line)
            units += [TextUnit(each, "prose", 1, not number) for number, each in enumerate(found)]
        elif kind == "list" and len(line) > _LONGEST_ITEM:
            first, *others = sentences(begun)
            units.append(TextUnit(indent + first, "list", gap, new))
            units += [TextUnit(each, "prose", 0, lead=" ", item=True) for each in others]
        elif indent and in_item and _continues(begun):
            first, *others = sentences(begun)
            units.append(TextUnit(first, "prose", gap, lead=indent, item=True))
            units += [TextUnit(each, "prose", 0, lead=" ", item=True) for each in others]
        else:
            units.append(TextUnit(line, kind, gap, new))
        gap, new = 1, False
    return units


def is_sentence(text: str) -> bool:
    """Whether a line of prose is a whole sentence: no caption, and no heading in bold."""
    return _SENTENCE_END.search(text) is not None and _CAPTION.match(text) is None


def opening(texts: Iterable[str]) -> str:
    """The sentence that tells what a page is about, by the texts of its sections; else its first line, or "".

    Captions and sentences about the text do not tell it. Of a page without prose it may be an item of a list.
    """
    units: list[TextUnit] = []
    for text in texts:
        units += text_units(text)
        if any(_tells(unit) for unit in units if unit.kind == "prose"):
            break
    first = min(
        (unit for unit in units if not unit.item),
        key=lambda unit: (unit.kind not in ("prose", "list"), not _tells(unit), unit.kind != "prose"),
        default=None,
    )
    return first.text if first else ""


def _tells(unit: TextUnit) -> bool:
    return is_sentence(unit.text) and ABOUT_TEXT.match(unit.text) is None


def _is_prose(line: str, alone: bool) -> bool:
    """Whether a line is a paragraph; one that other lines follow must also end like a sentence."""
    if line[0].isspace() or _LIST_ITEM.match(line) or CELLS in line:
        return False
    if len(_PROSE_WORD.findall(line)) < _LEAST_PROSE_WORDS:
        return False
    return alone or line.rstrip()[-1] in ".:!?…\"'”)"


def _continues(line: str) -> bool:
    """Whether an indented line below an item is a paragraph of it, and no code."""
    return (
        (line[0].isupper() or line[0] in '"“(')
        and _is_prose(line, alone=True)
        and _SENTENCE_END.search(line) is not None
        and _CODE_SIGNS.search(line) is None
    )


def _line_kind(line: str) -> TextKind:
    if _LIST_ITEM.match(line):
        return "list"
    return "table" if CELLS in line else "code"


def _size(unit: TextUnit) -> int:
    return estimated_tokens(unit.text) + 1


def _cut_long(unit: TextUnit, limit: int) -> list[TextUnit]:
    """Cut a unit far over ``limit`` tokens into pieces of about that size. The pieces joined are the unit."""
    tokens = estimated_tokens(unit.text)
    if tokens <= _LONGEST * limit:
        return [unit]
    first, *rest = _cut(unit.text, max(1, len(unit.text) * limit // tokens))
    return [
        replace(unit, text=first),
        *(TextUnit(piece, unit.kind, 1, True) for piece in rest),
    ]


def _cut(text: str, size: int) -> list[str]:
    """Cut into pieces of at most ``size`` characters, after a space in the second half if there is one."""
    pieces = []
    while len(text) > size:
        space = text.rfind(" ", size // 2, size)
        end = size if space < 0 else space + 1
        pieces.append(text[:end])
        text = text[end:]
    return [*pieces, text]


def group(units: Sequence[TextUnit], limit: int) -> Iterator[list[TextUnit]]:
    """Group units of one kind to texts of about ``limit`` tokens; a paragraph of prose begins a new text."""
    current: list[TextUnit] = []
    size = 0
    for unit in units:
        if current and (size + _size(unit) > limit or (unit.new and unit.kind == "prose")):
            yield current
            current, size = [], 0
        current.append(unit)
        size += _size(unit)
    if current:
        yield current


def joined(units: Sequence[TextUnit]) -> str:
    if all(unit.kind == "prose" and not unit.item for unit in units):
        return " ".join(" ".join(unit.text.split()) for unit in units)
    return units[0].text + "".join("\n" * unit.gap + unit.lead + unit.text for unit in units[1:])
