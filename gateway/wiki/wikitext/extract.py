"""MediaWiki wikitext to plain text with sections.

Written by hand instead of using a parser library because pages are other people's input: mwparserfromhell 0.7
takes 16 seconds for 15 KB of ``<a <a <a`` and backtracks on other unclosed markup too. The passes here are
linear, never raise, and know what a reader of plain text needs: code byte for byte, lists and tables line by
line. They do not expand templates; those are dropped, and so are files, categories, references and comments.
"""

from __future__ import annotations

import re

from gateway.wiki.source import Section
from gateway.wiki.wikitext.inline import plain
from gateway.wiki.wikitext.lists import ListLines
from gateway.wiki.wikitext.markup import drop_templates, resolve_links
from gateway.wiki.wikitext.protect import ProtectedText, block_of, protect, restore
from gateway.wiki.wikitext.tables import opens_table, read_table

# Part of the sample's marker: a change here makes stored sample pages be extracted again.
VERSION = 1

_REDIRECT = re.compile(
    r"\s{0,100}#REDIRECT\s{0,100}:?\s{0,100}\[\[([^\[\]{}\n|]{1,512})(?:\|[^\[\]\n]{0,512})?\]\]", re.I
)
_REDIRECT_WINDOW = 4096
_RULE = re.compile(r"-{4,}[ \t]*")


def extract(wikitext: str) -> list[Section]:
    """Sections in page order; the first is the lead, which may be empty.

    Paragraphs are one line each. Blank lines stand where the page has them: between paragraphs, not between
    the items of a list, the rows of a table, or a sentence and the list it introduces.
    """
    text, kept = protect(wikitext)
    return _Reader(resolve_links(drop_templates(text)), kept).sections()


def redirect_target(wikitext: str) -> str | None:
    """Title that the page redirects to, without its fragment; None when the page is no redirect."""
    match = _REDIRECT.match(wikitext[:_REDIRECT_WINDOW])
    if match is None:
        return None
    return normal_title(match[1].partition("#")[0].strip().lstrip(":")) or None


def plain_title(title: str) -> str:
    """A title with spaces instead of underscores; wiktionaries tell a small first letter from a capital."""
    return " ".join(title.replace("_", " ").split())


def normal_title(title: str) -> str:
    """A title as most MediaWikis write it: as :func:`plain_title`, and the first letter is a capital."""
    title = plain_title(title)
    return title[:1].upper() + title[1:] if len(title[:1].upper()) == 1 else title


class _Anchors:
    """Fragments of headings: spaces become underscores, a repeated one gets ``_2``, ``_3``, …"""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}  # by lower case: MediaWiki tells anchors apart without case

    def add(self, heading: str) -> str:
        base = re.sub(r"\s+", "_", heading.strip())
        anchor = base
        number = self._next.get(base.lower(), 1)
        if number > 1:
            while f"{base}_{number}".lower() in self._next:
                number += 1
            anchor = f"{base}_{number}"
            self._next[anchor.lower()] = 2
        self._next[base.lower()] = number + 1
        return anchor


class _Reader:
    """Third pass, line by line."""

    def __init__(self, text: str, kept: list[ProtectedText]) -> None:
        self._lines = text.split("\n")
        self._kept = kept
        self._anchors = _Anchors()
        self._lists = ListLines()
        self._done: list[Section] = []
        self._head = ("", "", 1)  # heading, anchor, level of the section being read
        self._items: list[str] = []  # its lines; a block of code is one item, "" a blank line
        self._paragraph: list[str] = []

    def sections(self) -> list[Section]:
        index = 0
        while index < len(self._lines):
            line = self._lines[index]
            if opens_table(line):
                self._end_paragraph()
                rows, index = read_table(self._lines, index, self._text, self._kept)
                self._items += rows
                self._lists.end()
            else:
                self._line(line)
                index += 1
        self._end_section()
        return self._done

    def _line(self, line: str) -> None:
        if (block := block_of(line, self._kept)) is not None:
            self._end_paragraph()
            self._items.append(block.text)
        elif not line.strip() or _RULE.fullmatch(line):
            self._blank()
        elif heading := _heading(line):
            self._begin_section(*heading)
        elif item := self._lists.item(line):
            self._end_paragraph()
            before, text = item
            self._items.append((before + self._text(text).replace("\n", "\n" + " " * len(before))).rstrip())
        elif line.startswith(" "):
            self._end_paragraph()
            self._lists.end()
            self._items.append(restore(plain(line[1:], keep_spaces=True), self._kept))
        else:
            self._lists.end()
            self._paragraph.append(line.strip())

    def _text(self, wikitext: str) -> str:
        return restore(plain(wikitext), self._kept)

    def _blank(self) -> None:
        self._end_paragraph()
        self._lists.end()
        if self._items and self._items[-1] != "":
            self._items.append("")

    def _end_paragraph(self) -> None:
        if self._paragraph and (text := self._text(" ".join(self._paragraph))):
            self._items.append(text)
        self._paragraph.clear()

    def _begin_section(self, level: int, wikitext: str) -> None:
        self._end_section()
        heading = " ".join(self._text(wikitext).split())
        self._head = (heading, self._anchors.add(heading), level)

    def _end_section(self) -> None:
        self._end_paragraph()
        self._lists.end()
        while self._items and self._items[-1] == "":
            self._items.pop()
        heading, anchor, level = self._head
        self._done.append(Section(heading, anchor, level, "\n".join(self._items)))
        self._items.clear()


def _heading(line: str) -> tuple[int, str] | None:
    """Level and text of ``== heading ==``. The shorter side counts; what is left over belongs to the text."""
    line = line.strip()
    if len(line) < 3 or line[0] != "=" or line[-1] != "=":
        return None
    left, right = len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("="))
    level = min(left, right, 6, (len(line) - 1) // 2)
    return level, line[level:-level].strip()
