"""Parses the regular expressions of `pattern`, in the dialect that JSON Schema recommends, into syntax trees.

Supported are characters, sets, groups, alternatives, repetitions, `.`, ``\\d \\w \\s`` and their opposites, and `^` and
`$` where an alternative begins and ends. Without them any text may precede or follow, as in the standard.
"""

from __future__ import annotations

import re

from model_host.grammar.gbnf.reader import Reader
from model_host.grammar.gbnf.syntax import (
    ANYTHING,
    Alternatives,
    Characters,
    Concatenation,
    Node,
    Range,
    Repeat,
    joined,
    others,
)

_DIGITS: list[Range] = [(0x30, 0x39)]
_WORD: list[Range] = [*_DIGITS, (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)]
_SPACE: list[Range] = [(0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)]
_SPACE += [(0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)]
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_LINE_ENDS: list[Range] = [(0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029)]
_CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
_GROUP = re.compile(r"\((?:\?:|\?<[A-Za-z_]\w*>)?(?!\?)")
_REPEAT = re.compile(r"([*+?]|\{[0-9]+(?:,[0-9]*)?\})\??")
_ANY_TEXT = Repeat(Characters(ANYTHING))


def parse_pattern(expression: str) -> Node:
    """The tree that the whole string must match. Raises ValueError with the place of what is not supported."""
    reader = _Pattern(expression)
    node = reader.alternatives(0)
    if reader.at < len(expression):
        raise reader.error("has a `)` without a `(`")
    return node


def length(node: Node) -> tuple[int, int | None]:
    """The least and the greatest number of characters of a text that matches."""
    match node:
        case Concatenation() | Alternatives():
            total, least = (sum, sum) if isinstance(node, Concatenation) else (max, min)
            sizes = [length(item) for item in node.items]
            highs = [high for _, high in sizes if high is not None]
            return least(low for low, _ in sizes), total(highs) if len(highs) == len(sizes) else None
        case Repeat():
            low, high = length(node.item)
            if high == 0:
                return 0, 0
            return low * node.least, None if high is None or node.most is None else high * node.most
        case _:
            return 1, 1


class _Pattern(Reader):
    escape = re.compile(r"x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|(.)", re.DOTALL)

    def alternative(self, depth: int) -> Node:
        open_ends = depth == 0
        items: list[Node] = [_ANY_TEXT] if open_ends and not self.take("^") else []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if open_ends and self.text[self.at] == "$" and self.text[self.at + 1 : self.at + 2] in ("", "|"):
                self.at += 1
                return Concatenation(tuple(items))
            items.append(self._item(depth))
            repeat = _REPEAT.match(self.text, self.at)
            if repeat is not None:
                items[-1] = self.repeated(items[-1], repeat[1])
                self.at = repeat.end()
        return Concatenation((*items, _ANY_TEXT) if open_ends else tuple(items))

    def _item(self, depth: int) -> Node:
        begin = self.at
        if group := _GROUP.match(self.text, begin):
            self.at = group.end()
            node = self.alternatives(depth + 1)
            if not self.take(")"):
                raise self.error("has a `(` without a `)`", begin)
            return node
        if self.take("["):
            return self.set()
        if self.take("."):
            return Characters(others(_LINE_ENDS))
        if self.text[begin] in "(^$*+?{}])":
            raise self.error("is not supported")
        ranges = joined(self.member())
        if not ranges:
            raise self.error("stands for no character", begin)
        return Characters(ranges)

    def escaped(self, sign: str, begin: int) -> tuple[Range, ...]:
        if sign.lower() in _CLASSES:
            ranges = _CLASSES[sign.lower()]
            return others(ranges) if sign.isupper() else tuple(ranges)
        if sign.isalnum() and sign not in _CONTROLS:
            raise self.error("is not supported", begin)
        code = _CONTROLS.get(sign, ord(sign))
        return ((code, code),)

    def error(self, problem: str, at: int | None = None) -> ValueError:
        at = self.at if at is None else at
        return ValueError(f"{self.text[at : at + 20]!r}, character {at + 1}, {problem}")
