"""The syntax that GBNF and regular expressions share: alternatives, groups, repetitions and sets of characters."""

from __future__ import annotations

import re

from model_host.grammar.gbnf.syntax import (
    MAX_CODE_POINT,
    MAX_REPETITION,
    Characters,
    Node,
    Range,
    Repeat,
    either,
    joined,
    others,
)

MAX_NESTING = 64  # groups
_COUNTS: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class Reader:
    """Reads ``text`` from ``at`` on."""

    # May follow a backslash. The last group is a sign for `escaped`, the others are code points in hexadecimal.
    escape: re.Pattern[str]

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def error(self, problem: str, at: int | None = None) -> ValueError:
        """The error to raise for the place ``at``, or the current one."""
        raise NotImplementedError

    def alternative(self, depth: int) -> Node:
        """Read up to the next `|` or the end of the group; ``depth`` counts the groups around it."""
        raise NotImplementedError

    def escaped(self, sign: str, begin: int) -> tuple[Range, ...]:
        """The characters that a backslash before ``sign`` stands for."""
        raise NotImplementedError

    def take(self, sign: str) -> bool:
        """Skip ``sign`` if it comes next; return whether it did."""
        found = self.text.startswith(sign, self.at)
        self.at += len(sign) * found
        return found

    def alternatives(self, depth: int) -> Node:
        if depth > MAX_NESTING:
            raise self.error(f"is nested deeper than {MAX_NESTING} groups")
        ways = [self.alternative(depth)]
        while self.take("|"):
            ways.append(self.alternative(depth))
        return either(ways)

    def repeated(self, item: Node, sign: str) -> Node:
        """Repeat ``item`` as ``sign`` says: `*`, `+`, `?` or a number in braces."""
        if sign in _COUNTS:
            return Repeat(item, *_COUNTS[sign])
        low, comma, high = (part.strip() for part in sign[1:-1].partition(","))
        if not low and not high:
            raise self.error(f"has a repetition without a number: `{sign}`")
        # Twelve digits of a long number are enough to exceed the limit.
        least, most = (int(digits.lstrip("0")[:12] or 0) for digits in (low, high if comma else low))
        if max(least, most) > MAX_REPETITION:
            raise self.error(f"repeats more than {MAX_REPETITION} times: `{sign[:40]}`")
        if comma and not high:
            return Repeat(item, least)
        if most < least:
            raise self.error(f"repeats at most {most} but at least {least} times: `{sign[:40]}`")
        return Repeat(item, least, most)

    def set(self) -> Node:
        """Read a set of characters from behind its `[`."""
        begin = self.at - 1
        negated = self.take("^")
        ranges: list[Range] = []
        while not self.take("]"):
            if self.at >= len(self.text):
                raise self.error("has a `[` without a `]`", begin)
            members = self.member()
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in (
                "]",
                "",
            ):
                self.at += 1
                (first, least), (most, last) = members[0], self.member()[0]
                if first != least or most != last or last < first:
                    raise self.error("has a range that ends before it begins", begin)
                members = ((first, last),)
            ranges += members
        found = others(ranges) if negated else joined(ranges)
        if not found or not ranges:
            raise self.error("has a set without any character", begin)
        return Characters(found)

    def member(self) -> tuple[Range, ...]:
        begin = self.at
        if not self.take("\\"):
            self.at += 1
            return ((ord(self.text[begin]), ord(self.text[begin])),)
        match = self.escape.match(self.text, self.at)
        if match is None:
            raise self.error(f"has an unknown escape: {self.text[begin : begin + 10]!r}", begin)
        self.at = match.end()
        *numbers, sign = match.groups()
        if sign is not None:
            return self.escaped(sign, begin)
        code = int(next(number for number in numbers if number is not None), 16)
        if code > MAX_CODE_POINT:
            raise self.error(f"has \\{match[0]}, which is beyond Unicode", begin)
        return ((code, code),)
