"""List items: ``* bullet``, ``# numbered``, ``; term``, ``: indented``, nested by repeating the signs."""

from __future__ import annotations

import re

_ITEM = re.compile(r"([*#:;]+)[ \t]*(.*)", re.DOTALL)
_INDENT = "  "
_MAX_DEPTH = 12


class ListLines:
    """Turns list items into lines and keeps the numbers of the lists that are open."""

    def __init__(self) -> None:
        self._open = ""
        self._numbers: list[int] = []

    def item(self, line: str) -> tuple[str, str] | None:
        """What to write before the item's text, and that text as wikitext; None when the line is no item."""
        match = _ITEM.match(line)
        if match is None:
            return None
        signs = match[1][:_MAX_DEPTH].replace(";", ":") if len(match[1]) > 1 else match[1]
        shared = _common(self._open.replace(";", ":"), signs.replace(";", ":"))
        self._numbers = self._numbers[:shared] + [0] * (len(signs) - shared)
        self._open = signs
        indent = _INDENT * (len(signs) - 1)
        if signs[-1] == "#":
            self._numbers[-1] += 1
            return f"{indent}{self._numbers[-1]}. ", match[2]
        if signs[-1] == "*":
            return f"{indent}- ", match[2]
        if signs == ";":
            return "", match[2].replace(" : ", ": ", 1)
        return indent if set(signs) != {":"} else indent + _INDENT, match[2]

    def end(self) -> None:
        """Something else follows: the next item starts new lists."""
        self._open, self._numbers = "", []


def _common(first: str, second: str) -> int:
    length = 0
    for a, b in zip(first, second, strict=False):
        if a != b:
            break
        length += 1
    return length
