"""Values written as in the tool calls of Gemma's templates: text between two quote markers, names bare."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from model_host.grammar.gbnf.syntax import Range
from model_host.grammar.schema.notation import character_set, literal, names_but, within
from model_host.grammar.schema.numbers import ANY_NUMBER

_BARE = re.compile(r"[\w$.-]+")
_BARE_CHARACTERS: tuple[Range, ...] = ((0x2D, 0x2D), (0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))


class Quoting(Struct, frozen=True):
    """A quote marker as text and as an expression, and expressions for what may stand between two.

    ``piece`` is text without the marker. ``characters`` are those that may be counted one by one: the marker does not
    begin with any of them.
    """

    text: str
    quote: str
    piece: str
    characters: tuple[Range, ...]


class GemmaNotation:
    """See :class:`model_host.grammar.schema.notation.Notation`. There are no escapes and no blanks."""

    comma = '","'
    colon = '":"'

    def __init__(self, quoting: Quoting) -> None:
        quote = quoting.quote
        self._quoting = quoting
        self.rules: dict[str, tuple[str, tuple[str, ...]]] = {
            "ws": ("", ()),
            "character": (character_set(quoting.characters), ()),
            "string": (f"{quote} {quoting.piece}* {quote}", ()),
            "number": (ANY_NUMBER, ()),
            "key": ("[a-zA-Z_] [a-zA-Z0-9_-]{0,63} | string", ("string",)),
            "pair": ('key ":" value', ("key", "value")),
            "object": ('"{" (pair ("," pair)*)? "}"', ("pair",)),
            "array": ('"[" (value ("," value)*)? "]"', ("value",)),
            "value": (
                'object | array | string | number | "true" | "false" | "null"',
                ("object", "array", "string", "number"),
            ),
        }

    def string(self, inside: str) -> str:
        """See the protocol."""
        return f"{self._quoting.quote} {inside} {self._quoting.quote}"

    def characters(self, ranges: tuple[Range, ...]) -> str:
        """See the protocol."""
        found = within(ranges, self._quoting.characters)
        if not found:
            raise ValueError("needs a character that cannot stand in this model's strings")
        return character_set(found)

    def name(self, name: str) -> str:
        """See the protocol."""
        return literal(name) if _BARE.fullmatch(name) else self.constant(name)

    def other_name(self, names: Sequence[str], prefix: str) -> dict[str, str]:
        """See the protocol. These names are bare ones."""
        rest = f"{character_set(_BARE_CHARACTERS)}{{0,63}}"
        inside = names_but(names, _BARE_CHARACTERS, rest, f"{prefix}-")
        return {prefix: f"{prefix}-0", **inside}

    def constant(self, value: Any) -> str:
        """See the protocol."""
        if isinstance(value, str):
            if self._quoting.text in value:
                raise ValueError("has a text with this model's quote marker in it")
            return self.string(literal(value))
        if isinstance(value, dict):
            pairs = [
                f'{self.name(name)} ":" {self.constant(value[name])}' for name in self.in_order(list(value))
            ]
            return _between("{", pairs, "}")
        if isinstance(value, list):
            return _between("[", [self.constant(item) for item in value], "]")
        return literal(json.dumps(value))

    def in_order(self, names: Sequence[str]) -> list[str]:
        """See the protocol: by the alphabet, as Gemma's templates print them."""
        return sorted(names, key=str.lower)


def _between(opening: str, items: list[str], closing: str) -> str:
    comma = ' "," '
    return f"{literal(opening)} {comma.join(items)} {literal(closing)}"
