"""Strings: their length, `pattern` and `format`. Of each format only the usual forms are allowed.

Patterns are regular expressions in the dialect that JSON Schema recommends. Supported are characters, sets, groups,
alternatives, repetitions, `.`, ``\\d \\w \\s`` and their opposites, and `^` and `$` where an alternative begins and
ends. Without them any text may precede or follow, as in the standard.
"""

from __future__ import annotations

import json
import re

from model_host.grammar.gbnf.reader import Reader
from model_host.grammar.gbnf.syntax import (
    ANYTHING,
    MAX_REPETITION,
    Alternatives,
    Characters,
    Concatenation,
    Node,
    Range,
    Reference,
    Repeat,
    joined,
    others,
)
from model_host.grammar.schema.keywords import greatest, least
from model_host.grammar.schema.parts import Part, RuleBuilder

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
            total, lowest = (sum, sum) if isinstance(node, Concatenation) else (max, min)
            sizes = [length(item) for item in node.items]
            highs = [high for _, high in sizes if high is not None]
            return lowest(low for low, _ in sizes), total(highs) if len(highs) == len(sizes) else None
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


_YEAR = "[1-9][0-9]{3}"
_LEAP_YEAR = "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)"
_MONTH_AND_DAY = (
    "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_DATE = f"(?:{_YEAR}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
_HOUR_AND_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_HOUR_AND_MINUTE}:[0-5][0-9](?:\.[0-9]{{1,6}})?(?:Z|[+-]{_HOUR_AND_MINUTE})"
_N = "[0-9]{1,4}"
_DAYS = f"(?:{_N}Y(?:{_N}M(?:{_N}D)?)?|{_N}M(?:{_N}D)?|{_N}D)"
_HOURS = f"T(?:{_N}H(?:{_N}M(?:{_N}S)?)?|{_N}M(?:{_N}S)?|{_N}S)"
_LABEL = "[a-z][a-z0-9]{0,11}(?:-[a-z0-9]{1,12}){0,2}"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,3}}"
_DOMAIN = r"(?:[a-z0-9]{1,20}\.){1,3}[a-z]{2,12}"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_URL_TEXT = "[A-Za-z0-9._~!$&'()*+,;=:@-]"

_FORMATS = {
    name: f"^(?:{shape})$"
    for name, shape in {
        "date": _DATE,
        "time": _TIME,
        "date-time": f"{_DATE}T{_TIME}",
        "duration": f"P(?:{_DAYS}(?:{_HOURS})?|{_HOURS}|{_N}W)",
        "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "email": rf"[A-Za-z0-9_]{{1,20}}(?:[.+-][A-Za-z0-9_]{{1,20}}){{0,2}}@{_DOMAIN}",
        "hostname": _HOST,
        "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
        "ipv6": "[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){7}",
        "uri": rf"https?://{_DOMAIN}(?::[1-9][0-9]{{0,3}})?(?:/{_URL_TEXT}*)*(?:\?{_URL_TEXT}*)?(?:#{_URL_TEXT}*)?",
    }.items()
}


def expression(builder: RuleBuilder, parts: list[Part]) -> Node:
    shortest, longest = greatest(parts, "minLength"), least(parts, "maxLength")
    shapes = _shapes(builder, parts)
    limited = [part for part in parts if {"minLength", "maxLength"} & part.schema.keys()]
    last = limited[-1] if limited else parts[-1]
    if longest is not None and longest < shortest:
        raise last.error(f"wants a string of at least {shortest} and at most {longest} characters")
    if shapes:
        (part, key, node), *more = shapes.values()
        for other, second, _ in more:
            builder.refuse(other, "has `pattern` or `format` where another one holds already", second)
        low, high = length(node)
        if low < shortest or (longest is not None and (high is None or high > longest)):
            allowed = f"{low} or more" if high is None else f"{low} to {high}"
            builder.refuse(
                last,
                f"limits the length of a string whose `{key}` allows {allowed} characters; put the limit into a "
                "`pattern`",
            )
        try:
            return builder.notation.string(builder.notation.text(node))
        except ValueError as error:
            raise part.error(str(error), key) from None
    if shortest == 0 and longest is None:
        return Reference("string")
    if max(shortest, longest or 0) > MAX_REPETITION:
        raise last.error(
            f"counts more than {MAX_REPETITION} characters; leave the limit out, or take a smaller one"
        )
    return builder.notation.string(Repeat(Reference("character"), shortest, longest))


def _shapes(builder: RuleBuilder, parts: list[Part]) -> dict[str, tuple[Part, str, Node]]:
    """The distinct values of `pattern` and `format`, each with its part, its keyword and its tree."""
    found: dict[str, tuple[Part, str, Node]] = {}
    for part in parts:
        for key in ("pattern", "format"):
            if key not in part.schema:
                continue
            value = part.schema[key]
            if not isinstance(value, str):
                raise part.error(f"has {json.dumps(value)[:40]} for `{key}`; it must be a string", key)
            expression = value if key == "pattern" else _FORMATS.get(value)
            if expression is None:
                builder.refuse(
                    part, f"has the format {value[:40]!r}; supported are {', '.join(_FORMATS)}", key
                )
                continue
            try:
                found[f"{key} {value}"] = part, key, parse_pattern(expression)
            except ValueError as error:
                builder.refuse(part, f"has a `pattern` that is not supported: {error}", key)
    return found
