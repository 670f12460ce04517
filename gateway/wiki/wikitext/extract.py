"""MediaWiki wikitext as plain text with sections.

Written by hand because pages are untrusted: mwparserfromhell 0.7 takes 16 s for 15 KB of ``<a <a <a`` and backtracks on
other unclosed markup too. The passes here are linear and never raise. They keep code byte for byte, lists and tables
line by line, keep infoboxes as rows, notes and keys as text, and drop other templates, files, categories,
references and comments.
"""

from __future__ import annotations

import re
from itertools import takewhile

from gateway.base.patterns import any_case
from gateway.wiki.scripts import defined
from gateway.wiki.source import Section
from gateway.wiki.wikitext.html_lists import lists_as_wikitext
from gateway.wiki.wikitext.infobox import ROW
from gateway.wiki.wikitext.inline import plain, plain_text
from gateway.wiki.wikitext.markup import drop_templates, resolve_links
from gateway.wiki.wikitext.protect import ProtectedText, block_of, protect, restore
from gateway.wiki.wikitext.tables import opens_table, read_table

# Part of the sample's marker: after an increment stored sample pages are extracted again.
VERSION = 4

_REDIRECT = any_case(
    r"\s{0,100}#REDIRECT\s{0,100}:?\s{0,100}\[\[([^\[\]{}\n|]{1,512})(?:\|[^\[\]\n]{0,512})?\]\]"
)
_REDIRECT_WINDOW = 4096
_RULE = re.compile(r"-{4,}[ \t]*")
_ITEM = re.compile(r"([*#:;]+)[ \t]*(.*)", re.DOTALL)
_INDENT = "  "
_MAX_DEPTH = 12


def extract(wikitext: str) -> list[Section]:
    """Sections in page order; the first is the lead, which may be empty.

    Each paragraph is one line. Blank lines stand where the page has them: between paragraphs, not between list items,
    table rows, or a sentence and the list that it introduces.
    """
    text, protected = protect(wikitext)
    text = lists_as_wikitext(resolve_links(drop_templates(text)), protected)
    return _Reader(text, protected).sections()


def redirect_target(wikitext: str) -> str | None:
    """The title that the page redirects to, without its fragment; None when the page is not a redirect."""
    match = _REDIRECT.match(wikitext[:_REDIRECT_WINDOW])
    if match is None:
        return None
    return normal_title(match[1].partition("#")[0].strip().lstrip(":")) or None


def plain_title(title: str) -> str:
    """A title with single spaces and no underscores. Keeps the first letter: in a Wiktionary its case matters."""
    return " ".join(title.replace("_", " ").split())


def normal_title(title: str) -> str:
    """:func:`plain_title` with a capital first letter, as most MediaWikis have it."""
    title = plain_title(title)
    return title[:1].upper() + title[1:] if len(title[:1].upper()) == 1 else title


class _Lists:
    """The open lists: ``* bullet``, ``# numbered``, ``; term``, ``: indented``, nested by repeating the signs."""

    def __init__(self) -> None:
        self._open = ""
        self._numbers: list[int] = []

    def item(self, line: str) -> tuple[str, str] | None:
        """The prefix and the wikitext of an item; None for any other line."""
        match = _ITEM.match(line)
        if match is None:
            return None
        signs = match[1][:_MAX_DEPTH].replace(";", ":") if len(match[1]) > 1 else match[1]
        pairs = zip(self._open.replace(";", ":"), signs.replace(";", ":"), strict=False)
        shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
        self._numbers = self._numbers[:shared] + [0] * (len(signs) - shared)
        self._open = signs
        indent = _INDENT * (len(signs) - 1)
        if signs[-1] == "#":
            self._numbers[-1] += 1
            return f"{indent}{self._numbers[-1]}. ", match[2]
        if signs[-1] == "*":
            return f"{indent}- ", match[2]
        if signs == ";":
            term, colon, text = match[2].partition(" : ")
            return ("- ", f"{term}: {text}") if colon else ("", term)
        return indent if set(signs) != {":"} else indent + _INDENT, match[2]

    def end(self) -> None:
        """End all lists: the next item starts new ones."""
        self._open, self._numbers = "", []


class _Reader:
    """The third pass, line by line."""

    def __init__(self, text: str, protected: list[ProtectedText]) -> None:
        self._lines = text.split("\n")
        self._protected = protected
        self._anchors: dict[str, int] = {}  # the next number, by lower case: they are case-insensitive
        self._lists = _Lists()
        self._done: list[Section] = []
        self._head = ("", "", 1)  # heading, anchor, level of the open section
        self._items: list[str] = []  # its lines; a block of code is one item, a blank line ""
        self._paragraph: list[str] = []
        self._box: list[str] = []  # rows of the section's infoboxes, which stand at its end
        self._term = ""  # the signs of the definition that the last item awaits or continues

    def sections(self) -> list[Section]:
        index = 0
        while index < len(self._lines):
            line = self._lines[index]
            if opens_table(line):
                self._end_paragraph()
                rows, index = read_table(self._lines, index, self._protected)
                self._items += rows
                self._lists.end()
            else:
                self._line(line)
                index += 1
        self._end_section()
        return self._done

    def _line(self, line: str) -> None:
        if (block := block_of(line, self._protected)) is not None:
            self._end_paragraph()
            self._items.append(block.text)
        elif line.startswith(ROW):
            row = plain_text(line.removeprefix(ROW), self._protected)
            if row.partition(" | ")[2]:
                self._box.append(row.replace("\n", ", "))
        elif not line.strip() or _RULE.fullmatch(line):
            self._blank()
        elif heading := _heading(line):
            self._begin_section(*heading)
        elif item := self._lists.item(line):
            self._end_paragraph()
            self._add_item(line, *item)
        elif line.startswith(" "):
            self._end_paragraph()
            self._lists.end()
            self._items.append(restore(plain(line[1:], keep_spaces=True), self._protected))
        else:
            self._lists.end()
            self._paragraph.append(line.strip())

    def _add_item(self, line: str, prefix: str, wikitext: str) -> None:
        """Add an item of a list; a definition joins the line of its term, which says what it is about."""
        text = plain_text(wikitext, self._protected).replace("\n", "\n" + " " * len(prefix))
        signs = line[: len(line) - len(line.lstrip("*#:;"))]
        if signs == self._term and self._items and self._items[-1]:
            self._items[-1] = defined(self._items[-1], text.strip())
            return
        self._items.append((prefix + text).rstrip())
        self._term = signs[:-1] + ":" if signs.endswith(";") and " : " not in wikitext else ""

    def _blank(self) -> None:
        self._end_paragraph()
        self._lists.end()
        if self._items and self._items[-1] != "":
            self._items.append("")

    def _end_paragraph(self) -> None:
        if self._paragraph and (text := plain_text(" ".join(self._paragraph), self._protected)):
            self._items.append(text)
        self._paragraph.clear()

    def _begin_section(self, level: int, wikitext: str) -> None:
        self._end_section()
        heading = " ".join(plain_text(wikitext, self._protected).split())
        self._head = (heading, self._anchor(heading), level)

    def _anchor(self, heading: str) -> str:
        """The fragment of a heading: spaces become underscores, a repeated one gets ``_2``, ``_3``, …"""
        anchor = base = re.sub(r"\s+", "_", heading)
        number = self._anchors.get(base.lower(), 1)
        if number > 1:
            while (anchor := f"{base}_{number}").lower() in self._anchors:
                number += 1
            self._anchors[anchor.lower()] = 2
        self._anchors[base.lower()] = number + 1
        return anchor

    def _end_section(self) -> None:
        self._end_paragraph()
        self._lists.end()
        while self._items and self._items[-1] == "":
            self._items.pop()
        if self._box:
            self._items += [""] * bool(self._items) + self._box
            self._box = []
        self._done.append(Section(*self._head, "\n".join(self._items)))
        self._items.clear()


def _heading(line: str) -> tuple[int, str] | None:
    """Level and text of ``== heading ==``. The shorter side counts; extra signs belong to the text."""
    line = line.strip()
    if len(line) < 3 or line[0] != "=" or line[-1] != "=":
        return None
    left, right = len(line) - len(line.lstrip("=")), len(line) - len(line.rstrip("="))
    level = min(left, right, 6, (len(line) - 1) // 2)
    return level, line[level:-level].strip()
