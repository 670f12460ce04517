"""Assemble pieces of HTML into lines of plain text: paragraphs, list items, table rows and code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from gateway.wiki.html.shown import math_source
from gateway.wiki.scripts import SPACES, defined, show_scripts

# Noncharacters that mark TeX until the line is complete.
TEX, TEX_END = "\ufdd2", "\ufdd3"
_MARKS = re.compile(f"[\ufdd0-{TEX_END}]")

_TEX = re.compile(f"{TEX}([^{TEX}{TEX_END}]*){TEX_END}")
_SOURCE_SPACE = re.compile(r"[ \t\r\n\f]+")
_AROUND_BREAK = re.compile(r" ?\n ?")
_ENDS, _LEAST_WORDS = (".", "!", "?", ":"), 4  # of a sentence
_INDENT = "  "
_MAX_DEPTH = 12


@dataclass
class _List:
    kind: str  # ul, ol or dl
    number: int = 0
    term: int = -1  # the index of the line with the term that the next definition belongs to


class _Item(NamedTuple):
    kind: str  # text, item, row or code
    text: str
    gap: bool  # whether a blank line precedes it


class Lines:
    """Lines of a section or of a table cell.

    Blank lines separate paragraphs, lists, tables and code, but not a paragraph from the list or code that it
    introduces: HTML does not show where the page's source has blank lines.
    """

    def __init__(self) -> None:
        self._items: list[_Item] = []
        self._inline: list[str] = []
        self._lists: list[_List] = []
        self._prefix = ""  # of the list's next line
        self._tag = ""  # of the open item
        self._block = 0  # number of the current paragraph, list, table or piece of code
        self._last_block = -1

    def add_text(self, text: str) -> None:
        self._inline.append(_SOURCE_SPACE.sub(" ", text))

    def add_mark(self, mark: str) -> None:
        """Add a line break or one of this module's marks."""
        self._inline.append(mark)

    def end_line(self) -> None:
        text = self.take_line()
        if not text:
            return
        if self._lists:
            opened, tag, self._tag = self._lists[-1], self._tag, ""
            if tag == "dd" and opened.term == len(self._items) - 1 >= 0:
                last = self._items[-1]
                self._items[-1] = last._replace(text=defined(last.text, text.replace("\n", " ")))
                return
            opened.term = len(self._items) if tag == "dt" else -1
            prefix = self._prefix
            self._prefix = " " * len(prefix)
            self._add("item", (prefix + text.replace("\n", "\n" + self._prefix)).rstrip())
        else:
            self._add_paragraphs(text.split("\n"))

    def _add_paragraphs(self, lines: list[str]) -> None:
        """Add lines of a text. A break between two sentences separates paragraphs; other lines may be verse or code."""
        for index, line in enumerate(lines):
            if not index or (_is_sentence(line) and _is_sentence(lines[index - 1])):
                self._block += 1
            self._add("text", line)

    def take_line(self) -> str:
        text = _tidy("".join(self._inline)) if self._inline else ""
        self._inline.clear()
        return text

    def add_code(self, code: str) -> None:
        """Add a block of code as it is."""
        self._begin_block()
        self._add("code", code)

    def add_rows(self, rows: list[str]) -> None:
        self._begin_block()
        for row in rows:
            self._add("row", row)

    def open_list(self, kind: str, start: int) -> None:
        self._begin_block()
        self._lists.append(_List(kind, start - 1))

    def begin_item(self, tag: str, number: int | None) -> None:
        """Begin a ``li``, ``dt`` or ``dd``; ``number`` is its ``value`` attribute."""
        self.end_line()
        if not self._lists:  # an item outside of any list
            return
        depth = min(len(self._lists), _MAX_DEPTH)
        indent, last, self._tag = _INDENT * (depth - 1), self._lists[-1], tag
        if last.kind == "ol":
            last.number = last.number + 1 if number is None else number
            self._prefix = f"{indent}{last.number}. "
        elif last.kind == "ul":
            self._prefix = f"{indent}- "
        elif tag == "dt" and depth == 1:
            self._prefix = ""
        else:
            plain = all(each.kind == "dl" for each in self._lists[:_MAX_DEPTH])
            self._prefix = indent + _INDENT if plain else indent

    def close_list(self) -> None:
        self.end_line()
        if self._lists:
            self._lists.pop()
            self._prefix = " " * len(self._prefix)

    def take(self) -> str:
        """Remove all lines and return them as a section's text."""
        self.end_line()
        text = "\n".join("\n" * item.gap + item.text for item in self._items)
        self._items.clear()
        self._lists.clear()
        return text

    def joined(self) -> str:
        """All lines as one, as for a table cell; only code keeps its line breaks."""
        self.end_line()
        out: list[str] = []
        for index, item in enumerate(self._items):
            if index:
                out.append("\n" if "code" in (item.kind, self._items[index - 1].kind) else " ")
            out.append(item.text if item.kind == "code" else item.text.replace("\n", " "))
        return "".join(out)

    def _begin_block(self) -> None:
        self.end_line()
        self._block += not self._lists

    def _add(self, kind: str, text: str) -> None:
        introduced = kind in ("item", "code") and self._items and self._items[-1].kind == "text"
        gap = bool(self._items) and self._block != self._last_block and not introduced
        self._last_block = self._block
        self._items.append(_Item(kind, text, gap))


def _is_sentence(line: str) -> bool:
    return line[-1:] in _ENDS and len(line.split(maxsplit=_LEAST_WORDS - 1)) == _LEAST_WORDS


def _tidy(line: str) -> str:
    if TEX in line:
        line = _TEX.sub(lambda match: math_source(match[1]), line)
    line = _MARKS.sub("", show_scripts(line))
    return _AROUND_BREAK.sub("\n", SPACES.sub(" ", line)).strip()
