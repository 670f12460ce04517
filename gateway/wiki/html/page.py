"""MediaWiki's HTML of a page as plain text with sections, in the form that ``extract.py`` gives wikitext."""

from __future__ import annotations

import re

from gateway.wiki.html.faq import questions_as_headings
from gateway.wiki.html.lines import TEX, TEX_END, Lines
from gateway.wiki.html.shown import is_infobox, shown
from gateway.wiki.html.tables import PARTS, Tables
from gateway.wiki.html.tokens import Tag
from gateway.wiki.scripts import SCRIPTS, without_marks
from gateway.wiki.source import Section

# Increment when the same HTML gives other sections: pages cached before are fetched again.
VERSION = 7

_BLOCKS = frozenset(
    {
        "address", "article", "aside", "blockquote", "center", "details", "div", "fieldset", "footer", "header",
        "hr", "main", "p", "section", "summary",
    }
)  # fmt: skip
_LISTS = frozenset({"ul", "ol", "dl"})
_ITEMS = frozenset({"li", "dt", "dd"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
# The footnotes of DocBook and Sphinx, behind the last section, and the section that they become.
_NOTES = frozenset({"footnotes", "footnote-list", "footnote"})
_NOTES_HEADING, _NOTES_LEVEL = "Notes", 2
# MediaWiki makes these spaces non-breaking everywhere, also in code.
_FRENCH_SPACE = re.compile(r"\u00a0(?=[?:;!%»›](?!\w))|(?<=[«‹])\u00a0")
_PERMALINK = re.compile(r"(?:\s?[¶§🔗]|\s#)\Z")  # a link to the heading
_NUMBER = re.compile(r"-?[0-9]{1,9}")


def extract_html(html: str) -> list[Section]:
    """Sections in page order; the first is the lead, which may be empty.

    An infobox's rows stand at the end of its section. Leaves out navigation, notices, references and pictures; formulas
    come as TeX. Never raises; linear in the length.
    """
    reader = _Reader()
    for event in questions_as_headings(shown(without_marks(html))):
        if isinstance(event, str):
            reader.text(event)
        else:
            element, opens = event
            (reader.open if opens else reader.close)(element)
    return reader.sections()


class _Reader:
    def __init__(self) -> None:
        self._done: list[Section] = []
        self._head = ("", "", 1)  # heading, anchor, level of the open section
        self._page = Lines()
        self._box = Lines()  # the section's infoboxes
        self._page_tables = self._tables = Tables(self._page)
        self._code: list[str] | None = None  # text of the open pre
        self._pre = 0  # open pre elements
        self._highlighted = 0  # open elements around highlighted code
        self._anchor: str | None = None  # of the open heading

    def text(self, text: str) -> None:
        if self._code is not None:
            self._code.append(text)
        else:
            self._tables.lines.add_text(text)

    def open(self, element: Tag) -> None:
        name, lines = element.name, self._tables.lines
        self._highlighted += "mw-highlight" in element.classes
        if self._code is not None:
            self._pre += name == "pre"
            if name == "br":
                self._code.append("\n")
        elif name == "pre":
            lines.end_line()
            self._code, self._pre = [], 1
        elif name in _HEADINGS:
            lines.end_line()
            self._anchor = element.attributes.get("id", "")
        elif name in PARTS:
            if is_infobox(element) and not self._tables:
                lines.end_line()
                self._tables = Tables(self._box)
            self._tables.open(name)
        elif name in _BLOCKS:
            lines.end_line()
            self._begin_notes(element)
        elif name in _LISTS:
            self._begin_notes(element)
            lines.open_list(name, _number(element, "start") or 1)
        elif name in _ITEMS:
            lines.begin_item(name, _number(element, "value"))
        else:
            self._open_inline(element, lines)

    def _begin_notes(self, element: Tag) -> None:
        """Footnotes say nothing about the heading above them."""
        if not self._tables and not _NOTES.isdisjoint(element.classes) and self._head[0] != _NOTES_HEADING:
            self._end_section()
            self._head = (_NOTES_HEADING, "", _NOTES_LEVEL)

    def _open_inline(self, element: Tag, lines: Lines) -> None:
        if element.name == "br":
            lines.add_mark("\n")
        elif element.name in SCRIPTS:
            lines.add_mark(SCRIPTS[element.name][0])
        elif _is_tex(element):
            lines.add_mark(TEX)
        elif self._anchor == "" and (element.name == "a" or "mw-headline" in element.classes):
            self._anchor = element.attributes.get("id", "") or element.attributes.get("name", "")

    def close(self, element: Tag) -> None:
        name, lines = element.name, self._tables.lines
        if self._code is not None:
            self._pre -= name == "pre"
            if not self._pre:
                self._end_code(self._code)
        elif name in _HEADINGS:
            self._end_heading(_HEADINGS[name])
        elif name in PARTS:
            self._tables.close(name)
            if not self._tables:
                self._tables = self._page_tables
        elif name in _LISTS:
            lines.close_list()
        elif name in _BLOCKS or name in _ITEMS:
            lines.end_line()
        elif name in SCRIPTS:
            lines.add_mark(SCRIPTS[name][1])
        elif _is_tex(element):
            lines.add_mark(TEX_END)
        self._highlighted -= "mw-highlight" in element.classes

    def sections(self) -> list[Section]:
        self._end_section()
        return self._done

    def _end_code(self, parts: list[str]) -> None:
        self._code = None
        code = "".join(parts).removeprefix("\n")  # browsers ignore a line break right after the tag
        code = code.strip("\n") if self._highlighted else _FRENCH_SPACE.sub(" ", code.removesuffix("\n"))
        self._tables.lines.add_code(code)

    def _end_heading(self, level: int) -> None:
        anchor, self._anchor = self._anchor, None
        if self._tables:
            self._tables.lines.end_line()
            return
        heading = _PERMALINK.sub("", " ".join(self._page.take_line().split()))
        self._end_section()
        self._head = (heading, anchor or re.sub(r"\s+", "_", heading), level)

    def _end_section(self) -> None:
        rows = [row for row in self._box.take().split("\n") if row.partition(" | ")[2].strip()]
        text = "\n\n".join(filter(None, [self._page.take(), "\n".join(rows)]))
        self._done.append(Section(*self._head, text))


def _is_tex(element: Tag) -> bool:
    return element.name == "span" and any(
        each.startswith("mwe-math-fallback-source") for each in element.classes
    )


def _number(element: Tag, attribute: str) -> int | None:
    text = element.attributes.get(attribute, "")
    return int(text) if _NUMBER.fullmatch(text) else None
