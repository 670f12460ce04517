"""Regular expressions of `pattern`, in the dialect that JSON Schema recommends, as trees of a grammar.

Understood: characters, sets, groups, alternatives, repetitions, `.`, ``\\d \\w \\s`` and their opposites, `^` and `$`
where an alternative begins and ends. Without `^` or `$` anything may stand there, as the standard has it.
"""

from __future__ import annotations

import re

from model_host.grammar.gbnf.parser import MAX_NESTING, MAX_REPETITION
from model_host.grammar.gbnf.syntax import (
    ANYTHING,
    MAX_CODE_POINT,
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
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL)
_ANY_TEXT = Repeat(Characters(ANYTHING), 0, None)


class PatternError(ValueError):
    """The expression cannot be used; the message says why, and where."""


def parse_pattern(expression: str) -> Node:
    """What the whole string must be. Raises PatternError."""
    return _Parser(expression).whole()


def length(node: Node) -> tuple[int, int | None]:
    """The least and the greatest number of characters that a pattern takes."""
    match node:
        case Concatenation():
            sizes = [length(item) for item in node.items]
            highs = [high for _, high in sizes if high is not None]
            return sum(low for low, _ in sizes), sum(highs) if len(highs) == len(sizes) else None
        case Alternatives():
            sizes = [length(way) for way in node.alternatives]
            highs = [high for _, high in sizes if high is not None]
            return min(low for low, _ in sizes), max(highs) if len(highs) == len(sizes) else None
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
        self._depth = 0

    def whole(self) -> Node:
        node = self._alternatives()
        if self._at < len(self._text):
            raise self._error("has a `)` without a `(`")
        return node

    def _alternatives(self) -> Node:
        ways = [self._alternative()]
        while self._peek("|"):
            self._at += 1
            ways.append(self._alternative())
        return ways[0] if len(ways) == 1 else Alternatives(tuple(ways))

    def _alternative(self) -> Node:
        outermost = self._depth == 0
        begins = outermost and self._peek("^")
        self._at += begins
        items: list[Node] = [] if begins or not outermost else [_ANY_TEXT]
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if outermost and self._peek("$") and self._text[self._at + 1 : self._at + 2] in ("", "|"):
                self._at += 1
                return Concatenation(tuple(items))
            items.append(self._repeated(self._item()))
        if outermost:
            items.append(_ANY_TEXT)
        return Concatenation(tuple(items))

    def _item(self) -> Node:
        sign = self._text[self._at]
        if sign == "(":
            return self._group()
        if sign == "[":
            return self._set()
        if sign == ".":
            self._at += 1
            return Characters(others(_LINE_ENDS))
        if sign == "\\":
            return self._characters(self._escape())
        if sign in "^$*+?{}])":
            raise self._error("is not supported")
        self._at += 1
        return self._characters([(ord(sign), ord(sign))])

    def _repeated(self, item: Node) -> Node:
        match = _REPEAT.match(self._text, self._at)
        if match is None:
            return item
        self._at = match.end()
        sign = match[1]
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign) or _times(sign)
        if max(least, most or 0) > MAX_REPETITION:
            raise self._error(f"repeats more than {MAX_REPETITION} times", match.start())
        if most is not None and most < least:
            raise self._error("repeats at most less often than at least", match.start())
        return Repeat(item, least, most)

    def _group(self) -> Node:
        match = _GROUP.match(self._text, self._at)
        if match is None or self._depth >= MAX_NESTING:
            raise self._error("is not supported")
        begin, self._at = self._at, match.end()
        self._depth += 1
        node = self._alternatives()
        self._depth -= 1
        if not self._peek(")"):
            raise self._error("has a `(` without a `)`", begin)
        self._at += 1
        return node

    # ------------------------------------------------------------------ characters

    def _set(self) -> Node:
        begin = self._at
        negated = self._text[begin + 1 : begin + 2] == "^"
        self._at += 1 + negated
        ranges: list[Range] = []
        while not self._peek("]"):
            if self._at >= len(self._text):
                raise self._error("has a `[` without a `]`", begin)
            first = self._member()
            if self._peek("-") and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                last = self._member()
                if len(first) > 1 or len(last) > 1 or last[0][1] < first[0][0] or first[0][0] != first[0][1]:
                    raise self._error("has a range that is none", begin)
                ranges.append((first[0][0], last[0][1]))
            else:
                ranges += first
        self._at += 1
        return self._characters(list(others(ranges)) if negated else ranges, begin)

    def _member(self) -> list[Range]:
        if self._peek("\\"):
            return self._escape()
        code = ord(self._text[self._at])
        self._at += 1
        return [(code, code)]

    def _escape(self) -> list[Range]:
        begin = self._at
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
        elif sign in _CONTROLS:
            code = _CONTROLS[sign]
        elif sign.isalnum():
            raise self._error("is not supported", begin)
        else:
            code = ord(sign)
        return [(code, code)]

    def _characters(self, ranges: list[Range], at: int | None = None) -> Characters:
        characters = Characters(joined(ranges))
        if not characters.ranges:
            raise self._error("stands for no character", at)
        return characters

    def _peek(self, sign: str) -> bool:
        return self._text.startswith(sign, self._at)

    def _error(self, problem: str, at: int | None = None) -> PatternError:
        at = self._at if at is None else at
        return PatternError(f"{self._text[at : at + 20]!r}, character {at + 1}, {problem}")


def _times(sign: str) -> tuple[int, int | None]:
    low, comma, high = sign[1:-1].partition(",")
    least = int(low.lstrip("0")[:9] or 0)
    if not comma:
        return least, least
    return least, int(high.lstrip("0")[:9] or 0) if high else None
