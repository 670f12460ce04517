"""Markdown as plain text with sections, in the form that the HTML reader gives: each paragraph and item is one line."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gateway.wiki.folder.dialects import FENCE, closes, plain_lines, without_templates
from gateway.wiki.source import Section

_HEADING = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*")
_UNDERLINE = re.compile(r"(=+|-{2,})[ \t]*")
_BREAK = re.compile(r"[ ]{0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}")
_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*")
_IMAGE = re.compile(r"!\[[^\[\]]*\]\([^()]*\)")
_LINK = re.compile(r"\[([^\[\]]+)\](?:\([^()]*\)|\[[^\[\]]*\])")
_EMPHASIS = re.compile(
    r"(\*\*|__)(?=\S)(.{1,500}?)(?<=\S)\1|(?<![\w*])([*_])(?=\S)([^*_]{1,500}?)(?<=\S)\3(?![\w*])"
)
# Code, and signs that a backslash keeps from being markup: they stand aside while markup is removed.
_AS_IT_IS = re.compile(r"`([^`]+)`|\\([!-/:-@\[-`{-~])")
_ASIDE = re.compile("\ue000([0-9]+)\ue001")
_NO_MARKS = dict.fromkeys(map(ord, "\ue000\ue001"))
_ITEM = re.compile(r"([ \t]*)(?:([*+-])|(\d{1,9})[.)])[ \t]+(?=\S)")
_QUOTE = re.compile(r"[ ]{0,3}(?:>[ ]?)+")
_HARD_BREAK = re.compile(r"(?:[ ]{2,}|\\)\Z")
_INDENTED = re.compile(r"[ ]{4}|[ ]{0,3}\t")
_ID = re.compile(r"[ \t]*\{:?[ \t]*#([^\s{}]{1,200})[^{}]{0,200}\}\Z")


def extract_markdown(text: str) -> list[Section]:
    """Sections in page order; the first is the lead, which may be empty. Linear in the length."""
    reader = _Reader(list(plain_lines(text)))
    return reader.sections()


def joined_lines(lines: Iterable[str]) -> str:
    """Lines of plain text as paragraphs, items, rows and code; signs are no markup."""
    return _Reader(list(lines), is_plain=True).sections()[0].text


class _Reader:
    def __init__(self, lines: list[str], *, is_plain: bool = False) -> None:
        self._lines = lines
        self._plain = is_plain
        self._done: list[Section] = []
        self._head = ("", "", 1)  # heading, anchor, level
        self._items: list[str] = []  # the section's lines
        self._paragraph: list[str] = []  # the lines of the open paragraph or item
        self._in_list = self._in_table = False

    def sections(self) -> list[Section]:
        fence = ""
        for index, line in enumerate(self._lines):
            if fence and closes(line, fence):
                fence = ""
            elif fence:
                self._items.append(line)
            elif not self._plain and (opened := FENCE.fullmatch(line)):
                self._end_paragraph()
                fence = opened[1]
            else:
                self._line(line, self._lines[index + 1] if index + 1 < len(self._lines) else "")
        self._end_section()
        return self._done

    def _line(self, line: str, following: str) -> None:
        line = line[quote.end() :] if (quote := _QUOTE.match(line)) else line
        if not line.strip():
            self._end_paragraph()
            self._in_table = False
            self._items.append("")
        elif not self._plain and (heading := _HEADING.fullmatch(line)):
            self._begin_section(heading[2], len(heading[1]))
        elif not self._plain and _UNDERLINE.fullmatch(line) and self._paragraph:
            title = " ".join(self._paragraph)
            self._paragraph.clear()
            self._begin_section(title, 1 if line[0] == "=" else 2)
        elif "|" in line and _RULE.fullmatch(line):
            self._in_table = True
        elif line.lstrip().startswith("|") or ("|" in line and (self._in_table or _is_rule(following))):
            self._end_paragraph()
            cells = line.strip().strip("|").split("|")
            self._items.append(" | ".join(self._inline(cell.strip()) for cell in cells))
        elif _BREAK.fullmatch(line):
            self._end_paragraph()
            self._in_list = False
        elif (item := _ITEM.match(line)) and self._begins_item(item):
            self._end_paragraph()
            self._in_list = True
            self._paragraph.append(f"{item[1]}- {line[item.end() :]}" if item[2] else line)
        elif self._paragraph:
            self._continue(line)
        elif _INDENTED.match(line) and not self._in_list:
            self._items.append(line.rstrip())  # code
        else:
            self._in_list = self._in_list and line[0].isspace()
            self._paragraph.append(line)

    def _begins_item(self, item: re.Match[str]) -> bool:
        """Whether a line is an item, and not a paragraph's line that happens to begin with a number."""
        return self._in_list or not self._paragraph or bool(item[2]) or item[3] == "1"

    def _continue(self, line: str) -> None:
        before = self._paragraph.pop()
        if _HARD_BREAK.search(before):
            self._paragraph.append(_HARD_BREAK.sub("", before))
            self._end_paragraph()
            self._paragraph.append(line)
        else:
            self._paragraph += [before.rstrip(), line.lstrip()]

    def _inline(self, text: str) -> str:
        return text.rstrip() if self._plain else _inline(text)

    def _end_paragraph(self) -> None:
        if self._paragraph:
            self._items.append(self._inline(" ".join(self._paragraph)))
            self._paragraph.clear()

    def _begin_section(self, heading: str, level: int) -> None:
        self._end_section()
        given = _ID.search(heading)
        heading = _inline(heading[: given.start()] if given else heading).strip()
        self._head = heading, given[1] if given else anchor_of(heading), level

    def _end_section(self) -> None:
        self._end_paragraph()
        self._in_list = self._in_table = False
        self._done.append(Section(*self._head, "\n".join(self._items).strip("\n")))
        self._items.clear()


def _is_rule(line: str) -> bool:
    return "|" in line and _RULE.fullmatch(line) is not None


def _inline(text: str) -> str:
    """A text without its markup. Code stays as it is."""
    kept: list[str] = []

    def aside(found: re.Match[str]) -> str:
        kept.append(found[1] or found[2])
        return f"\ue000{len(kept) - 1}\ue001"

    text = _AS_IT_IS.sub(aside, text.translate(_NO_MARKS))
    text = without_templates(_LINK.sub(r"\1", _IMAGE.sub("", text)))
    text = _EMPHASIS.sub(lambda found: found[2] or found[4], text)
    return _ASIDE.sub(lambda found: kept[int(found[1])], text).rstrip()


def anchor_of(heading: str) -> str:
    """The fragment that GitHub and most generators give a heading."""
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())
