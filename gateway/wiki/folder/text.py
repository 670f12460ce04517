"""Plain text, such as a manual in one file: headings are underlined, numbered, or lines in capitals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gateway.base.patterns import any_case
from gateway.wiki.folder.markdown import anchor_of, joined_lines
from gateway.wiki.source import Section

_SPACES = {ord("\f"): "\n", ord("\u00a0"): " "}
_LONGEST = 100  # characters of a heading
_LINE = re.compile(r"([=\-~*#^+._━─═])\1{2,}[ \t]*")
_CHAPTER = any_case(
    r"(?:chapter|part|appendix)[ \t]+(?:[0-9]{1,3}|[A-Z]|[IVX]{1,6})(?:[.:][ \t]+\S.*|[.:]?[ \t]*)"
)
_NUMBERED = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,3}){0,5})\.?[ \t]+[^\W_].*")
_CAPITALS = re.compile(r"[A-Z][A-Z0-9 ,/&()'-]{2,60}")
_CONTENTS = any_case(r"(?:table of )?contents:?")
_LONGEST_ENTRY = 60  # of such a list; a longer line is text
_PAGE_NUMBER = re.compile(r"\.{3,}[ ]{0,9}[0-9]{0,4}\Z|[ ]{3,9}[0-9]{1,4}\Z")  # in a list of contents
_FRAME = re.compile(r"[ ]*[┌├└╔╠╚+][─━═┬┼┴╦╬╩┐┤┘╗╣╝+=-]{2,}[ ]*")
_ROW = re.compile(r"[ ]*[│║|](.*)[│║|][ ]*")
_ITEM = re.compile(r"\s*(?:[-*+•]|[0-9]{1,3}[.)])\s")
_WORD = re.compile(r"[(“\"']?[^\W\d_]+(?:['’-][^\W\d_]+)*[.,;:!?)”\"']{0,3}")
_INDENTED = 4  # from this indent on, Markdown would read code
_LEAST_WORDS, _PLAIN_SHARE = 4, 0.7
_CELL_END = re.compile(r"[│║|]")


def extract_text(text: str) -> list[Section]:
    """Sections in page order; the first is the lead. Linear in the length."""
    sections = []
    head, lines = ("", "", 1), list[str]()
    for level, line in _headings(text.translate(_SPACES).expandtabs().splitlines()):
        if level:
            sections.append(Section(*head, joined_lines(_prose(_rows(lines)))))
            head, lines = (line, anchor_of(line), level), []
        else:
            lines.append(line)
    return [*sections, Section(*head, joined_lines(_prose(_rows(lines))))]


def _headings(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Lines with their level as a heading, 0 for text; without lists of contents and drawn lines."""
    signs: list[str] = []  # of underlines, the outermost first
    is_contents = False
    for at, line in enumerate(lines):
        title, after = line.strip(), lines[at + 1] if at + 1 < len(lines) else ""
        level, drawn = 0, _LINE.fullmatch(line)
        if not drawn and title and line[0] != " " and len(title) <= _LONGEST:
            under = _LINE.fullmatch(after)
            above = lines[at - 1] if at else ""
            if above.strip() and not _LINE.fullmatch(above):
                pass
            elif under and 2 * len(after.strip()) >= len(title):
                if under[1] not in signs:
                    signs.append(under[1])
                level = 1 + signs.index(under[1])
            elif not after.strip():
                level = _level(title)
        if (
            level
            or _CONTENTS.fullmatch(title)
            or (len(title) > _LONGEST_ENTRY and not _PAGE_NUMBER.search(title))
        ):
            is_contents = _CONTENTS.fullmatch(title) is not None
        if not is_contents:
            yield level, "" if drawn else title if level else line


def _level(line: str) -> int:
    """The level of a line by itself as a heading, 0 for none."""
    if _CHAPTER.fullmatch(line):
        return 1
    number = _NUMBERED.fullmatch(line)
    if number and line[-1] not in ".,;:" and not _PAGE_NUMBER.search(line):
        return 2 + number[1].count(".")
    return 2 if _CAPITALS.fullmatch(line) else 0


def _rows(lines: Iterable[str]) -> Iterator[str]:
    """The lines with drawn tables as rows; a cell may have several lines."""
    cells: list[list[str]] = []  # of the open row, by line
    for line in [*lines, ""]:
        row = _ROW.fullmatch(line)
        found = [cell.strip() for cell in _CELL_END.split(row[1])] if row else []
        if cells and len(found) != len(cells[0]):
            yield f"| {' | '.join(' '.join(filter(None, column)) for column in zip(*cells, strict=True))} |"
            cells = []
        if found:
            cells.append(found)
        elif not _FRAME.fullmatch(line):
            yield line


def _prose(lines: Iterable[str]) -> Iterator[str]:
    """The lines with indented paragraphs, such as those below an option, as one line; indented code stays."""
    block: list[str] = []
    for line in [*lines, ""]:
        if block and (not line.strip() or _indent(line) != _indent(block[0])):
            text = " ".join(map(str.strip, block))
            yield from [text] if _is_prose(text) else block
            block = []
        if _indent(line) >= _INDENTED and not _ITEM.match(line):
            block.append(line)
        else:
            yield line


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_prose(text: str) -> bool:
    words = text.split()
    plain = sum(_WORD.fullmatch(word) is not None for word in words)
    return text[0].isupper() and text[-1] in ".:!?)" and plain >= max(_LEAST_WORDS, _PLAIN_SHARE * len(words))
