"""Regular expressions of `pattern`, in the dialect that JSON Schema recommends, as trees of a grammar.

Understood: characters, sets, groups, alternatives, repetitions, `.`, ``\\d \\w \\s`` and their opposites, `^` and `$`
where an alternative begins and ends. Without `^` or `$` anything may stand there, as the standard has it.
"""

from __future__ import annotations

import re

from model_host.gbnf.syntax import (
    ANYTHING,
    MAX_CODE_POINT,
    MAX_NESTING,
    Characters,
    Choice,
    Node,
    Range,
    Repeat,
    Sequence,
    either,
    joined,
    others,
    repetition,
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
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL)
_ANY_TEXT = Repeat(Characters(ANYTHING))


def parse_pattern(expression: str) -> Node:
    """What the whole string must be: a tree of characters. Raises ValueError, which says why and where."""
    return _Parser(expression).whole()


def length(node: Node) -> tuple[int, int | None]:
    """The least and the greatest number of characters that a pattern takes."""
    match node:
        case Sequence() | Choice():
            total, least = (sum, sum) if isinstance(node, Sequence) else (max, min)
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


class _Parser:
    def __init__(self, expression: str) -> None:
        self._text = expression
        self._at = 0

    def whole(self) -> Node:
        node = self._alternatives(0)
        if self._at < len(self._text):
            raise self._error("has a `)` without a `(`")
        return node

    def _alternatives(self, depth: int) -> Node:
        ways = [self._alternative(depth)]
        while self._take("|"):
            ways.append(self._alternative(depth))
        return either(ways)

    def _alternative(self, depth: int) -> Node:
        open_ends = depth == 0
        items: list[Node] = [_ANY_TEXT] if open_ends and not self._take("^") else []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if (
                open_ends
                and self._text[self._at] == "$"
                and self._text[self._at + 1 : self._at + 2] in ("", "|")
            ):
                self._at += 1
                return Sequence(tuple(items))
            items.append(self._repeated(self._item(depth)))
        return Sequence((*items, _ANY_TEXT) if open_ends else tuple(items))

    def _item(self, depth: int) -> Node:
        begin = self._at
        sign = self._text[begin]
        if sign == "(":
            return self._group(depth + 1)
        if sign in "^$*+?{}])":
            raise self._error("is not supported")
        if self._take("["):
            ranges = self._set(begin)
        elif self._take("."):
            ranges = others(_LINE_ENDS)
        else:
            ranges = joined(self._member())
        if not ranges:
            raise self._error("stands for no character", begin)
        return Characters(ranges)

    def _repeated(self, item: Node) -> Node:
        match = _REPEAT.match(self._text, self._at)
        if match is None:
            return item
        try:
            repeated = Repeat(item, *repetition(match[1]))
        except ValueError as error:
            raise self._error(str(error)) from None
        self._at = match.end()
        return repeated

    def _group(self, depth: int) -> Node:
        begin = self._at
        match = _GROUP.match(self._text, begin)
        if match is None or depth > MAX_NESTING:
            raise self._error("is not supported")
        self._at = match.end()
        node = self._alternatives(depth)
        if not self._take(")"):
            raise self._error("has a `(` without a `)`", begin)
        return node

    # ------------------------------------------------------------------ characters

    def _set(self, begin: int) -> tuple[Range, ...]:
        negated = self._take("^")
        ranges: list[Range] = []
        while not self._take("]"):
            if self._at >= len(self._text):
                raise self._error("has a `[` without a `]`", begin)
            first = last = self._member()
            if self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] not in (
                "]",
                "",
            ):
                self._at += 1
                last = self._member()
                if len(first) > 1 or len(last) > 1 or last[0][1] < first[0][0] or first[0][0] != first[0][1]:
                    raise self._error("has a range that is none", begin)
                first = [(first[0][0], last[0][1])]
            ranges += first
        return others(ranges) if negated else joined(ranges)

    def _member(self) -> list[Range]:
        """The characters that one character or escape stands for."""
        begin = self._at
        if self._text[begin] != "\\":
            self._at += 1
            return [(ord(self._text[begin]), ord(self._text[begin]))]
        match = _ESCAPE.match(self._text, begin)
        if match is None:
            raise self._error("ends within an escape")
        self._at = match.end()
        sign = match[4]
        if sign is None:
            code = int(match[1] or match[2] or match[3], 16)
            if code > MAX_CODE_POINT:
                raise self._error("is beyond Unicode", begin)
        elif sign.lower() in _CLASSES:
            ranges = _CLASSES[sign.lower()]
            return list(others(ranges)) if sign.isupper() else ranges
        elif sign.isalnum() and sign not in _CONTROLS:
            raise self._error("is not supported", begin)
        else:
            code = _CONTROLS.get(sign, ord(sign))
        return [(code, code)]

    def _take(self, sign: str) -> bool:
        """Whether ``sign`` comes next; if so, go on behind it."""
        found = self._text.startswith(sign, self._at)
        self._at += found
        return found

    def _error(self, problem: str, at: int | None = None) -> ValueError:
        at = self._at if at is None else at
        return ValueError(f"{self._text[at : at + 20]!r}, character {at + 1}, {problem}")
