"""A tokenizer for the subset of HTML that MediaWiki produces.

Written by hand because pages are untrusted: html.parser takes 10 s for 30 KB of ``<a <a <a``, and tree builders take
quadratic time for nested elements (Lexbor 0.7 s for 100 KB of ``<div>``). This one is linear. MediaWiki closes what it
opens, so no tree is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from gateway.base.patterns import any_case
from gateway.wiki.wikitext.protect import decode_entities

VOID = frozenset(
    {
        "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr",
    }
)  # fmt: skip
_RAW = frozenset({"script", "style", "textarea", "title", "iframe", "noembed", "noframes", "xmp"})
_RAW_END = {name: any_case(f"</{name}") for name in _RAW}
_NAME = re.compile(r"<(/?)([A-Za-z][^\s/>]*)")
_VALUE_OR_END = re.compile(r"=\s*([\"'])|>")
_ATTRIBUTE = re.compile(r"([^\s=/>\"']+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+)))?")


@dataclass(frozen=True)
class Tag:
    """``name`` is in lower case; ``raw`` holds the attributes as written."""

    name: str
    closing: bool
    raw: str

    @cached_property
    def attributes(self) -> dict[str, str]:
        """Decoded values by lower-case name; the first one of a repeated name counts."""
        found: dict[str, str] = {}
        for match in _ATTRIBUTE.finditer(self.raw):
            value = match[2] or match[3] or match[4] or ""
            found.setdefault(match[1].lower(), decode_entities(value))
        return found

    @cached_property
    def classes(self) -> list[str]:
        """In lower case."""
        return self.attributes.get("class", "").lower().split()


def tokens(html: str) -> Iterator[Tag | str]:
    """Tags and decoded texts in order, without comments and the content of scripts and the like.

    Unfinished markup swallows the rest, as in a browser. Linear in the length.
    """
    position = 0
    while (at := html.find("<", position)) >= 0:
        if at > position:
            yield decode_entities(html[position:at])
        start = _NAME.match(html, at)
        if start is None:
            after = _after_comment(html, at)
            if after is None:
                yield "<"
            position = at + 1 if after is None else after
            continue
        end = _end_of_tag(html, start.end())
        if end < 0:
            return
        tag = Tag(start[2].lower(), bool(start[1]), html[start.end() : end])
        yield tag
        position = end + 1
        if tag.name in _RAW and not tag.closing:
            close = _RAW_END[tag.name].search(html, position)
            if close is None:
                return
            position = close.start()
    if position < len(html):
        yield decode_entities(html[position:])


def _end_of_tag(html: str, position: int) -> int:
    """Index of the ``>`` that ends the tag, skipping quoted values; -1 when there is none."""
    while match := _VALUE_OR_END.search(html, position):
        if match[1] is None:
            return match.start()
        closing = html.find(match[1], match.end())
        if closing < 0:
            return -1
        position = closing + 1
    return -1


def _after_comment(html: str, at: int) -> int | None:
    """Index after a ``<!…``, ``<?…`` or ``</…`` that is not a tag; None when the ``<`` is text."""
    if html.startswith("<!--", at):
        end, length = html.find("-->", at + 2), 3
    elif html.startswith(("<!", "<?", "</"), at):
        end, length = html.find(">", at + 2), 1
    else:
        return None
    return len(html) if end < 0 else end + length
