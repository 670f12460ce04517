"""Wikitext tables as lines of cells: ``cell | cell | cell``."""

from __future__ import annotations

import re

from gateway.base.patterns import any_case
from gateway.wiki.wikitext.inline import plain_text
from gateway.wiki.wikitext.protect import ProtectedText, block_of

_MAX_DEPTH = 4
_CELLS = re.compile(r"\|\|")
_HEADER_CELLS = re.compile(r"\|\||!!")
_BREAK = any_case(r"<br\s{0,8}/?>")
_HEADING = re.compile(r"={2,6}[^=]")


def opens_table(line: str) -> bool:
    """Whether a table starts here; it may be indented with colons."""
    return line.lstrip(" \t:").startswith("{|")


def read_table(
    lines: list[str], start: int, protected: list[ProtectedText], depth: int = 1
) -> tuple[list[str], int]:
    """Rows of the table that starts at ``lines[start]``, and the index of the line after it.

    A caption is the first row. A table inside a cell becomes part of that cell, its rows joined by ``; ``. Cells that
    span rows or columns appear once. A heading ends a table whose end is missing. Linear in the number of lines.
    """
    table = _Table(protected)
    index = start + 1
    while index < len(lines):
        line = lines[index].strip()
        if _HEADING.match(line) and line.endswith("=="):
            break
        index += 1
        if line.startswith("|}"):
            break
        if opens_table(line):
            if depth < _MAX_DEPTH:
                rows, index = read_table(lines, index - 1, protected, depth + 1)
                table.add_text("; ".join(rows))
        else:
            table.add_line(line)
    return table.rows(), index


class _Table:
    def __init__(self, protected: list[ProtectedText]) -> None:
        self._protected = protected
        self._rows: list[list[list[str]]] = [[]]  # rows of cells of lines
        self._caption: list[str] = []
        self._in_caption = False

    def add_line(self, line: str) -> None:
        if line.startswith("|-"):
            self._rows.append([])
            self._in_caption = False
        elif line.startswith("|+"):
            self._caption.append(_without_attributes(line[2:]))
            self._in_caption = True
        elif line.startswith("|"):
            self._add_cells(_CELLS.split(line[1:]))
        elif line.startswith("!"):
            self._add_cells(_HEADER_CELLS.split(line[1:]))
        else:
            self.add_text(line)

    def add_text(self, line: str) -> None:
        """Add a line to the last cell or caption."""
        if self._in_caption:
            self._caption.append(line)
        elif self._rows[-1]:
            self._rows[-1][-1].append(line)
        elif line:
            self._rows[-1].append([line])

    def rows(self) -> list[str]:
        caption = plain_text(" ".join(self._caption), self._protected)
        rows = [[plain_text(self._joined(cell), self._protected) for cell in row] for row in self._rows]
        return [*([caption] if caption else []), *(" | ".join(cells) for cells in rows if any(cells))]

    def _add_cells(self, cells: list[str]) -> None:
        self._in_caption = False
        self._rows[-1] += [[_without_attributes(cell)] for cell in cells]

    def _joined(self, cell: list[str]) -> str:
        """A cell's lines as one; only code keeps its line breaks."""
        parts: list[str] = []
        after_code = False
        for line in filter(None, cell):
            is_code = block_of(line, self._protected) is not None
            parts += ["\n" if parts and (is_code or after_code) else " ", _BREAK.sub(" ", line)]
            after_code = is_code
        return "".join(parts)


def _without_attributes(cell: str) -> str:
    """``style="…" | text`` without its attributes. A bar after anything else is part of the text."""
    before, bar, after = cell.partition("|")
    is_attributes = not before.strip() or "=" in before or before.strip().lower() == "nowrap"
    return after if bar and is_attributes else cell
