"""How values are written: as JSON, or as in the tool calls of Gemma's templates."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from model_host.grammar.gbnf.parser import parse
from model_host.grammar.gbnf.syntax import (
    Alternatives,
    Characters,
    Literal,
    Node,
    Range,
    Repeat,
    Rules,
    Token,
    either,
    others,
    row,
    within,
)
from model_host.grammar.gbnf.syntax import Concatenation as Row


def _shared(comma: str, colon: str) -> Rules:
    """Rules that both notations have. Numbers have at most 16 digits and an exponent of two, so they are finite."""
    return parse(rf"""
root ::= comma colon value string key character
comma ::= {comma}
colon ::= {colon}
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{{" (key {colon} value ({comma} key {colon} value)*)? "}}"
array ::= "[" (value ({comma} value)*)? "]"
number ::= "-"? ("0" | [1-9] [0-9]{{0,15}}) ("." [0-9]{{1,16}})? ([eE] [-+]? [0-9]{{1,2}})?
string ::= "\"" character* "\""
key ::= string
character ::= [^"\\\x01-\x1F] | "\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F] | [dD] [0-7]) [0-9a-fA-F]{{2}})
""")


_JSON, _GEMMA = _shared('"," " "?', '":" " "?'), _shared('","', '":"')
_BARE = re.compile(r"[\w$.-]+")
_BARE_START: tuple[Range, ...] = ((0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_BARE_CHARACTERS: tuple[Range, ...] = ((0x2D, 0x2D), (0x30, 0x39), *_BARE_START)


class JsonNotation:
    """JSON, with at most one space after each comma and colon."""

    # Characters that need no escape in a string.
    plain: tuple[Range, ...] = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, 0x10FFFF))
    in_names = plain  # characters of names that no schema lists
    rest: Node = Repeat(Characters(plain))  # what follows the first character of such a name
    quote: Node = Literal('"')
    name_quote = quote
    # Sort key of properties: none, as in the schema.
    order: Callable[[str], str] = staticmethod(lambda name: "")

    def __init__(self, rules: Rules = _JSON) -> None:
        self.rules = rules
        self.comma, self.colon = rules["comma"], rules["colon"]

    def string(self, inside: Node) -> Node:
        return row(self.quote, inside, self.quote)

    def characters(self, ranges: Sequence[Range]) -> Node:
        """One character of a set within a string, escaped if it must be."""
        plain = within(ranges, self.plain)
        escaped = within(ranges, ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)))
        ways: list[Node] = [Characters(plain)] if plain else []
        for low, high in escaped:
            ways += [Literal(json.dumps(chr(code))[1:-1]) for code in range(low, high + 1)]
        return either(ways)

    def text(self, node: Node) -> Node:
        """The content of a string that matches the pattern ``node``. Raises ValueError if it cannot be written."""
        match node:
            case Characters():
                return self.characters(node.ranges)
            case Row():
                return Row(tuple(map(self.text, node.items)))
            case Alternatives():
                return Alternatives(tuple(map(self.text, node.items)))
            case Repeat():
                return Repeat(self.text(node.item), node.least, node.most)
            case _:
                raise AssertionError("patterns consist of characters")

    def name(self, name: str) -> Node:
        return self.constant(name)

    def constant(self, value: Any) -> Node:
        """Exactly this value, spaced as Python and most models do. Raises ValueError if it cannot be written."""
        return Literal(json.dumps(value, ensure_ascii=False))


class GemmaNotation(JsonNotation):
    """Strings between two quote markers, bare names, no escapes and no spaces.

    ``token`` is the marker if the vocabulary has it as a token. Otherwise no string may contain the marker, and
    its first character is excluded where characters are counted.
    """

    in_names = _BARE_CHARACTERS
    name_quote = row()
    order = staticmethod(str.lower)  # as Gemma's templates sort them
    rest = Repeat(Characters(_BARE_CHARACTERS), 0, 63)

    def __init__(self, marker: str, token: int | None) -> None:
        self._marker = marker
        self.plain = _all_but(marker[0])
        self.quote = Literal(marker) if token is None else Token(token)
        piece = _without(marker) if token is None else Token(token, negated=True)
        string = self.string(Repeat(piece))
        key = either([row(Characters(_BARE_START), self.rest), string])
        super().__init__(_GEMMA | {"string": string, "key": key, "character": Characters(self.plain)})

    def characters(self, ranges: Sequence[Range]) -> Node:
        found = within(ranges, self.plain)
        if not found:
            raise ValueError("needs a character that cannot stand in this model's strings")
        return Characters(found)

    def name(self, name: str) -> Node:
        return Literal(name) if _BARE.fullmatch(name) else self.constant(name)

    def constant(self, value: Any) -> Node:
        if isinstance(value, str):
            if self._marker in value:
                raise ValueError("has a text with this model's quote marker in it")
            return self.string(Literal(value))
        if isinstance(value, dict):
            names = sorted(value, key=self.order)
            pairs = [row(self.name(name), ":", self.constant(value[name])) for name in names]
            return row("{", *_separated(pairs), "}")
        if isinstance(value, list):
            return row("[", *_separated([self.constant(item) for item in value]), "]")
        return Literal(json.dumps(value))


class PlainNotation(GemmaNotation):
    """Strings as they are, up to a marker that the caller adds. For schemas that allow strings only."""

    def string(self, inside: Node) -> Node:
        return inside


def _without(marker: str) -> Node:
    """A piece of a text without ``marker``: a character, or a beginning of the marker and what does not continue it."""
    first = marker[0]
    begun = [
        row(Repeat(Literal(first), 1), marker[1:length], Characters(_all_but(first + marker[length])))
        for length in range(1, len(marker))
    ]
    return either([Characters(_all_but(first)), *begun])


def _all_but(characters: str) -> tuple[Range, ...]:
    return others([(ord(each), ord(each)) for each in characters])


def _separated(items: list[Node]) -> list[Node]:
    return [node for item in items for node in (Literal(","), item)][1:]
