"""The rules of a grammar that is being made of a schema."""

from __future__ import annotations

from model_host.grammar.gbnf.syntax import GrammarError
from model_host.grammar.schema.notation import Notation
from model_host.grammar.schema.parts import MAX_CHAIN, Document, Part

MAX_GRAMMAR_CHARACTERS = 2**19  # reading more would keep others waiting for seconds


class Rules:
    """Rules by name, and the places whose rule has a name but no body yet.

    ``lenient``: what a schema has and a grammar cannot express is left out, not refused.
    """

    def __init__(self, document: Document, notation: Notation, *, lenient: bool) -> None:
        self.notation = notation
        self.lenient = lenient
        self._document = document
        self._rules: dict[str, str] = {}
        self._size = 0
        self._places: dict[frozenset[str], str] = {}  # what holds at a place, by its paths → its rule
        self._unwritten: list[tuple[str, tuple[Part, ...]]] = []

    def text(self) -> str:
        """The grammar."""
        return "".join(f"{name} ::= {body}\n" for name, body in self._rules.items())

    def unwritten(self) -> tuple[str, tuple[Part, ...]] | None:
        """Take a place whose rule is to be defined next; None when all are."""
        return self._unwritten.pop() if self._unwritten else None

    def place(self, parts: tuple[Part, ...], name: str | None = None) -> str:
        """The rule for a value for which all ``parts`` hold."""
        key = frozenset(self._without_detours(part).identity for part in parts)
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = name or f"s{len(self._places)}"
            self._unwritten.append((known, parts))
        return known

    def rule(self, body: str) -> str:
        """A new rule with this body."""
        name = f"r{len(self._rules)}"
        self.define(name, body)
        return name

    def named(self, made: dict[str, str]) -> None:
        """Rules with names of their own."""
        for name, body in made.items():
            self.define(name, body)

    def fixed(self, name: str) -> str:
        """A rule of the notation, with all that it needs."""
        if name not in self._rules:
            body, needed = self.notation.rules[name]
            self.define(name, body)
            for other in needed:
                self.fixed(other)
        return name

    def define(self, name: str, body: str) -> None:
        """Write the rule of that name."""
        self._rules[name] = body
        self._size += len(name) + len(body)
        if self._size > MAX_GRAMMAR_CHARACTERS:
            raise GrammarError("the JSON schema makes too large a grammar; make it simpler")

    def _without_detours(self, part: Part) -> Part:
        """What a schema with nothing but a `$ref` refers to."""
        for _ in range(MAX_CHAIN):
            if not isinstance(part.schema, dict) or part.schema.keys() != {"$ref"}:
                break
            part = self._document.target(part)
        return part
