"""How the values of a schema are written: as JSON, or as another notation of the same values. GBNF expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from model_host.grammar.gbnf.syntax import Alternatives, Characters, Node, Range, Repeat, joined, others
from model_host.grammar.gbnf.syntax import Concatenation as Row


class Notation(Protocol):
    """What differs between notations."""

    comma: str
    colon: str

    @property
    def rules(self) -> Mapping[str, tuple[str, tuple[str, ...]]]:
        """What does not depend on the schema: by name of a rule its body and the rules it uses.

        Among them are ``value``, ``object``, ``array``, ``string``, ``key``, ``character``, ``number``, and for use in
        ``comma`` and ``colon``, ``ws``.
        """
        ...

    def string(self, inside: str) -> str:
        """A string whose text is ``inside``."""
        ...

    def characters(self, ranges: tuple[Range, ...]) -> str:
        """One character of a set, within a string. Raises ValueError when none of them can stand there."""
        ...

    def name(self, name: str) -> str:
        """The name of a property."""
        ...

    def other_name(self, names: Sequence[str], prefix: str) -> dict[str, str]:
        """Rules for any name but these; the one to use is called ``prefix``."""
        ...

    def constant(self, value: Any) -> str:
        """Exactly this value. Raises ValueError when it cannot be written."""
        ...

    def in_order(self, names: Sequence[str]) -> list[str]:
        """Properties in the order in which they are written."""
        ...


def literal(text: str) -> str:
    """Exactly this text."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def character_set(ranges: Sequence[Range]) -> str:
    """One character of the set."""
    return (
        "["
        + "".join(_code(low) if low == high else f"{_code(low)}-{_code(high)}" for low, high in ranges)
        + "]"
    )


def _code(code: int) -> str:
    return f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def within(ranges: Sequence[Range], bounds: Sequence[Range]) -> tuple[Range, ...]:
    """What two sets have in common."""
    return joined([(max(a, c), min(b, d)) for a, b in ranges for c, d in bounds if max(a, c) <= min(b, d)])


def text_of(node: Node, notation: Notation) -> str:
    """The expression for text within a string that is made as ``node`` says. Raises ValueError."""
    match node:
        case Characters():
            return notation.characters(node.ranges)
        case Row():
            return " ".join(text_of(item, notation) for item in node.items) or '""'
        case Alternatives():
            return f"({' | '.join(text_of(way, notation) for way in node.alternatives)})"
        case Repeat():
            return f"({text_of(node.item, notation)}){times(node.least, node.most)}"
        case _:
            raise AssertionError("patterns consist of characters")


def times(least: int, most: int | None) -> str:
    """How often the thing before it is repeated."""
    if most is None:
        return {0: "*", 1: "+"}.get(least, f"{{{least},}}")
    return "?" if (least, most) == (0, 1) else f"{{{least},{most}}}"


def names_but(names: Sequence[str], allowed: Sequence[Range], rest: str, prefix: str) -> dict[str, str]:
    """Rules for every text of ``allowed`` characters that is none of ``names``; the first is the one to use.

    ``rest`` stands for any number of such characters. A tree of prefixes: a text is another one as soon as it leaves
    the tree, or where it ends between two names.
    """
    rules: dict[str, str] = {}
    beginnings = [""]
    for at in beginnings:  # which grows on the way
        following = sorted({name[len(at)] for name in names if len(name) > len(at) and name.startswith(at)})
        following = [c for c in following if within([(ord(c), ord(c))], allowed)]
        ways = []
        for character in following:
            beginnings.append(at + character)
            ways.append(f"{literal(character)} {prefix}{len(beginnings) - 1}")
        strange = within(others([(ord(c), ord(c)) for c in following]), allowed)
        if strange:
            ways.append(f"{character_set(strange)} {rest}")
        if at not in names and at:
            ways.append('""')
        rules[f"{prefix}{len(rules)}"] = " | ".join(ways)
    return rules
