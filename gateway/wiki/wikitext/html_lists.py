"""HTML lists inside wikitext, as converters such as pandoc write them, as wikitext lists: one line per item.

Without this pass every ``<p>`` of an item would be a line of its own, and a definition would lose its term.
"""

from __future__ import annotations

import re

from gateway.base.patterns import any_case
from gateway.wiki.wikitext.protect import ProtectedText, block_of

_TOKEN = any_case(
    r"<(?P<end>/?)(?P<tag>ul|ol|dl|li|dt|dd|p)(?:[\s/][^<>]{0,1000})?>"
    r"|^[ \t:]*(?P<table>\{\||\|\})|^=(?P<heading>[^\n]{1,1000})=[ \t]*$",
    re.M,
)
_LISTS = {"ul": "*", "ol": "#", "dl": ":"}
_ITEMS = {"li": "", "dt": ";", "dd": ":"}  # the last sign, if it is not the list's
_WIKITEXT_ITEM = tuple("*#:;")
_MAX_DEPTH = 12


def lists_as_wikitext(text: str, protected: list[ProtectedText]) -> str:
    """Replace HTML lists outside of wikitext tables. Linear in the length of the text."""
    writer = _Writer(protected)
    tables = position = 0
    for token in _TOKEN.finditer(text):
        writer.add(text[position : token.start()], as_it_is=tables > 0)
        position = token.end()
        tag = (token["tag"] or "").lower()
        if token["heading"]:
            tables = 0
            writer.end_all()
        if token["table"]:
            tables = max(0, tables + (1 if token["table"] == "{|" else -1))
            writer.add_line(token[0])
        elif tables or not tag or not writer.tag(tag, closes=bool(token["end"])):
            writer.add(token[0], as_it_is=True)
    writer.add(text[position:])
    writer.end_all()
    return "".join(writer.out)


class _Writer:
    def __init__(self, protected: list[ProtectedText]) -> None:
        self.out: list[str] = []
        self._protected = protected
        self._lists: list[str] = []  # the signs of the open lists
        self._item: list[str] = []  # the words of the open item

    def tag(self, name: str, closes: bool) -> bool:
        """Take a tag of a list; false for one that belongs to none."""
        if name in _LISTS:
            self._end_item()
            if not closes:
                self._lists.append(_LISTS[name])
            elif self._lists:
                self._lists.pop()
        elif not self._lists:
            return False
        elif name in _ITEMS:
            self._end_item()
            if not closes:
                self._lists[-1] = _ITEMS[name] or self._lists[-1]
                self._item = ["".join(self._lists[:_MAX_DEPTH])]
        return True

    def add(self, text: str, as_it_is: bool = False) -> None:
        """Add text; in an item, its line breaks are spaces, but code and lists of wikitext have lines of their own."""
        if as_it_is or not self._lists:
            self._end_item()
            self.out.append(text)
            return
        for line in text.split("\n"):
            if block_of(line, self._protected) or line.startswith(_WIKITEXT_ITEM):
                self.add_line(line)
            else:
                self._item += line.split()

    def add_line(self, line: str) -> None:
        self._end_item()
        if self._lists:
            self._emit(line)
        else:
            self.out.append(line)

    def end_all(self) -> None:
        self._end_item()
        self._lists.clear()

    def _end_item(self) -> None:
        if len(self._item) > 1 or (self._item and not self._item[0].startswith(_WIKITEXT_ITEM)):
            self._emit(" ".join(self._item))
        self._item = []

    def _emit(self, line: str) -> None:
        before = next((part for part in reversed(self.out) if part), "\n")
        self.out.append(f"{line}\n" if before.endswith("\n") else f"\n{line}\n")
