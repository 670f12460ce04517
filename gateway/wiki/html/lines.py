"""Lines of plain text made of pieces of HTML: paragraphs, list items, code; in the shape of ``extract.py``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gateway.wiki.html.shown import math_source

# Noncharacters that stand for raised text and TeX until the line is complete.
RAISED, RAISED_END, TEX, TEX_END = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"
MARKS = re.compile(f"[{RAISED}-{TEX_END}]")

_ORDINAL = re.compile(f"{RAISED}(st|nd|rd|th){RAISED_END}", re.IGNORECASE)
_TEX = re.compile(f"{TEX}([^{TEX}{TEX_END}]*){TEX_END}")
_SOURCE_SPACE = re.compile(r"[ \t\r\n\f]+")
_SPACES = re.compile(r"[ \t\u00a0\u2009\u202f]+")
_AROUND_BREAK = re.compile(r" ?\n ?")
_INDENT = "  "
_MAX_DEPTH = 12


@dataclass
class _List:
    kind: str  # ul, ol or dl
    number: int = 0


class Lines:
    """Lines of a section or of a table cell.

    Blank lines stand between paragraphs, lists, tables and code, but not between a paragraph and the list or code
    that it introduces: where the page's source has blank lines, its HTML does not tell.
    """

    def __init__(self) -> None:
        self._items: list[tuple[str, str]] = []  # kind (text, item, row, code) and text
        self._gaps: set[int] = set()  # indices of items with a blank line before them
        self._inline: list[str] = []
        self._lists: list[_List] = []
        self._before = ""  # what the next line of the list begins with
        self._block = 0  # the paragraph, list, table or piece of code that is being read
        self._last_block = -1

    def add_text(self, text: str) -> None:
        """Text of the present line; runs of white space are one space."""
        self._inline.append(_SOURCE_SPACE.sub(" ", text))

    def add_mark(self, mark: str) -> None:
        """A line break or one of the marks of this module."""
        self._inline.append(mark)

    def end_line(self) -> None:
        """The present paragraph, item or heading is complete."""
        text = self.take_line()
        if not text:
            return
        if self._lists:
            before = self._before
            self._before = " " * len(before)
            self._add("item", (before + text.replace("\n", "\n" + self._before)).rstrip())
        else:
            self._block += 1
            self._add("text", text)

    def take_line(self) -> str:
        """The present line without putting it among the others."""
        text = _tidy("".join(self._inline)) if self._inline else ""
        self._inline.clear()
        return text

    def add_code(self, code: str) -> None:
        """A block of code, which stays as it is."""
        self.end_line()
        if not self._lists:
            self._block += 1
        self._add("code", code)

    def add_rows(self, rows: list[str]) -> None:
        """A table."""
        self.end_line()
        if not self._lists:
            self._block += 1
        for row in rows:
            self._add("row", row)

    def open_list(self, kind: str, start: int) -> None:
        """A list begins whose first number is ``start``."""
        self.end_line()
        if not self._lists:
            self._block += 1
        self._lists.append(_List(kind, start - 1))

    def begin_item(self, tag: str, number: int | None) -> None:
        """An item (``li``, ``dt``, ``dd``) begins; ``number`` is the one it is given in the page, if it is."""
        self.end_line()
        if not self._lists:  # an item outside of any list
            return
        depth = min(len(self._lists), _MAX_DEPTH)
        indent, last = _INDENT * (depth - 1), self._lists[-1]
        if last.kind == "ol":
            last.number = last.number + 1 if number is None else number
            self._before = f"{indent}{last.number}. "
        elif last.kind == "ul":
            self._before = f"{indent}- "
        elif tag == "dt" and depth == 1:
            self._before = ""
        else:
            plain = all(each.kind == "dl" for each in self._lists[:_MAX_DEPTH])
            self._before = indent + _INDENT if plain else indent

    def close_list(self) -> None:
        """The list that was opened last ends."""
        self.end_line()
        if self._lists:
            self._lists.pop()
            self._before = " " * len(self._before)

    def take(self) -> str:
        """All lines as a section's text; begins anew."""
        self.end_line()
        out: list[str] = []
        for index, (_, text) in enumerate(self._items):
            if index in self._gaps:
                out.append("")
            out.append(text)
        self._items.clear()
        self._gaps.clear()
        self._lists.clear()
        return "\n".join(out)

    def joined(self) -> str:
        """All lines as one, as a table's cell shows them, except around code, whose lines must stay lines."""
        self.end_line()
        out: list[str] = []
        for index, (kind, text) in enumerate(self._items):
            if index:
                out.append("\n" if "code" in (kind, self._items[index - 1][0]) else " ")
            out.append(text.strip() if kind == "item" else text)
        return "".join(out)

    def _add(self, kind: str, text: str) -> None:
        introduced = kind in ("item", "code") and self._items and self._items[-1][0] == "text"
        if self._items and self._block != self._last_block and not introduced:
            self._gaps.add(len(self._items))
        self._last_block = self._block
        self._items.append((kind, text))


def _tidy(line: str) -> str:
    if TEX in line:
        line = _TEX.sub(lambda match: math_source(match[1]), line)
    if RAISED in line:
        line = _ORDINAL.sub(r"\1", line).replace(RAISED, "^")
    line = MARKS.sub("", line)
    return _AROUND_BREAK.sub("\n", _SPACES.sub(" ", line)).strip()
