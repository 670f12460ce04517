"""Values written as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from model_host.grammar.gbnf.syntax import Range
from model_host.grammar.schema.notation import character_set, literal, names_but, within
from model_host.grammar.schema.numbers import ANY_NUMBER

# What stands in a string as it is: no quote, backslash or control character.
_PLAIN: tuple[Range, ...] = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, 0x10FFFF))
# No half of a surrogate pair either.
_ESCAPED = r'"\\" (["\\/bfnrt] | "u" ([0-9a-cA-CefEF] [0-9a-fA-F] | [dD] [0-7]) [0-9a-fA-F] [0-9a-fA-F])'


class JsonNotation:
    """See :class:`model_host.grammar.schema.notation.Notation`. Between two values there is at most one blank."""

    comma = '"," ws'
    colon = '":" ws'
    rules: Mapping[str, tuple[str, tuple[str, ...]]] = {
        "ws": ('" "?', ()),
        "character": (f"{character_set(_PLAIN)} | {_ESCAPED}", ()),
        "string": (r'"\"" character* "\""', ("character",)),
        "number": (ANY_NUMBER, ()),
        "value": (
            'object | array | string | number | "true" | "false" | "null"',
            ("object", "array", "string", "number"),
        ),
        "key": ("string", ("string",)),
        "pair": ('key ":" ws value', ("key", "ws", "value")),
        "object": ('"{" (pair ("," ws pair)*)? "}"', ("pair", "ws")),
        "array": ('"[" (value ("," ws value)*)? "]"', ("value", "ws")),
    }

    def string(self, inside: str) -> str:
        """See the protocol."""
        return rf'"\"" {inside} "\""'

    def characters(self, ranges: tuple[Range, ...]) -> str:
        """See the protocol. Each character is written in one way: escaped only where it must be."""
        plain = within(ranges, _PLAIN)
        ways = [character_set(plain)] if plain else []
        for low, high in within(ranges, ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C))):
            ways += [literal(json.dumps(chr(code))[1:-1]) for code in range(low, high + 1)]
        return ways[0] if len(ways) == 1 else f"({' | '.join(ways)})"

    def name(self, name: str) -> str:
        """See the protocol."""
        return literal(json.dumps(name, ensure_ascii=False))

    def other_name(self, names: Sequence[str], prefix: str) -> dict[str, str]:
        """See the protocol. These names have no escapes in them, and so are not other spellings of the given ones."""
        inside = names_but(names, _PLAIN, f"{character_set(_PLAIN)}*", f"{prefix}-")
        return {prefix: self.string(f"{prefix}-0"), **inside}

    def constant(self, value: Any) -> str:
        """See the protocol; spaced as Python and most models write it."""
        return literal(json.dumps(value, ensure_ascii=False))

    def in_order(self, names: Sequence[str]) -> list[str]:
        """See the protocol: as in the schema."""
        return list(names)
