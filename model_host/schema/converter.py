"""From a schema to a grammar: one rule for all that holds at one place, and a list of places still to do."""

from __future__ import annotations

from typing import Any

import msgspec

from model_host.gbnf.check import LeftRecursionError, can_end, check
from model_host.gbnf.parser import parse
from model_host.gbnf.syntax import GrammarError
from model_host.schema import arrays, constants, objects, oneof, strings
from model_host.schema.bounds import numbers_of
from model_host.schema.json_notation import JsonNotation
from model_host.schema.keywords import BY_TYPE, TYPES, types_of, unsupported
from model_host.schema.notation import Notation
from model_host.schema.parts import MAX_CHAIN, Choice, Document, Part

MAX_SCHEMA_BYTES = 64 * 1024
MAX_GRAMMAR_CHARACTERS = 2**19  # reading more would keep others waiting for seconds


def schema_to_grammar(
    schema: dict[str, Any] | bool, notation: Notation | None = None, *, lenient: bool = False
) -> str:
    """GBNF with the rule ``root``, for values written as JSON unless another notation is given.

    Raises GrammarError with the path of what is malformed, contradictory, or not supported. ``lenient``: what is not
    supported is left out of the grammar instead, which then allows more than the schema.
    """
    try:
        size = len(msgspec.json.encode(schema))
        if size > MAX_SCHEMA_BYTES:
            raise GrammarError(f"the JSON schema has {size} bytes, over the limit of {MAX_SCHEMA_BYTES}")
        grammar = Converter(schema, notation or JsonNotation(), lenient=lenient).grammar()
    except RecursionError:
        raise GrammarError("the JSON schema is nested too deeply") from None
    except UnicodeEncodeError:
        raise GrammarError(
            "the JSON schema contains half of a surrogate pair, which no text contains"
        ) from None
    rules = parse(grammar)
    if "root" not in can_end(rules):
        raise GrammarError(
            "the JSON schema never comes to an end: every value that satisfies it contains another"
        )
    try:
        check(rules)
    except LeftRecursionError:
        raise GrammarError("the JSON schema refers to itself without anything between") from None
    return grammar


class Converter:
    """One schema on its way to a grammar. Methods return GBNF expressions."""

    def __init__(self, schema: Any, notation: Notation, *, lenient: bool) -> None:
        self.notation = notation
        self.lenient = lenient
        self._document = Document(schema)
        self._rules: dict[str, str] = {}
        self._size = 0
        self._places: dict[frozenset[str], str] = {}  # what holds at a place, by its paths → its rule
        self._to_do: list[tuple[str, tuple[Part, ...]]] = []

    def grammar(self) -> str:
        self.place((self._document.root,), "root")
        self.fixed("ws")
        while self._to_do:
            rule, parts = self._to_do.pop()
            self._define(rule, self._expression(parts))
        return "".join(f"{name} ::= {body}\n" for name, body in self._rules.items())

    # ------------------------------------------------------------------ rules

    def place(self, parts: tuple[Part, ...], name: str | None = None) -> str:
        """The rule for a value for which all ``parts`` hold."""
        key = frozenset(self._without_detours(part).identity for part in parts)
        known = self._places.get(key)
        if known is None:
            known = self._places[key] = name or f"s{len(self._places)}"
            self._to_do.append((known, parts))
        return known

    def rule(self, body: str) -> str:
        """A new rule with this body."""
        name = f"r{len(self._rules)}"
        self._define(name, body)
        return name

    def rules(self, made: dict[str, str]) -> None:
        """Rules with names of their own."""
        for name, body in made.items():
            self._define(name, body)

    def fixed(self, name: str) -> str:
        """A rule of the notation, with all that it needs."""
        if name not in self._rules:
            body, needed = self.notation.rules[name]
            self._define(name, body)
            for other in needed:
                self.fixed(other)
        return name

    def _define(self, name: str, body: str) -> None:
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

    # ------------------------------------------------------------------ places

    def _expression(self, parts: tuple[Part, ...]) -> str:
        plain, choices = self._document.unfold(parts)
        for part in plain:
            if part.schema is False:
                raise part.error("allows no value")
        plain = [self._known_words(part) for part in plain if part.schema is not True]
        if choices:
            return self._choose(plain, choices)
        listed = constants.listed(plain)
        if listed is not None:
            return constants.expression(self, plain, listed)
        types = self.types(plain)
        if types is None:
            return self.fixed("value")
        return " | ".join(self.rule(self._typed(kind, plain)) for kind in types)

    def _choose(self, plain: list[Part], choices: list[Choice]) -> str:
        """One of the branches of the first choice, with all that holds besides."""
        choice = choices[0]
        branches = [branch for branch in choice.branches if branch.schema is not False]
        if not branches:
            raise choice.owner.error(f"leaves no branch of `{choice.key}`", choice.key)
        if choice.key == "oneOf" and not self.lenient:
            oneof.check(self._document, plain, branches, choice.owner)
        beside = [
            part.less("$ref", "allOf", *[choice.key] * (part.path == choice.owner.path)) for part in plain
        ]
        return " | ".join(self.place((*beside, branch)) for branch in branches)

    def _known_words(self, part: Part) -> Part:
        """The part, once it is clear that all its keywords are honoured."""
        problems = unsupported(part)
        if problems and not self.lenient:
            key = next(iter(problems))
            raise part.error(problems[key], key)
        return part.less(*problems) if problems else part

    def types(self, plain: list[Part]) -> list[str] | None:
        """The types that a value may have; None for any value at all."""
        named = [types for part in plain if (types := types_of(part)) is not None]
        words = {key for part in plain for key in part.schema}
        if named:
            found = set.intersection(*named)
        else:
            found = {kind for kind, keys in BY_TYPE.items() if keys & words}
            if not found:
                return None
            found |= {"integer"} if "number" in found else set()
        if "multipleOf" in words:  # it is 1
            found -= {"number"}
        if not found:
            raise plain[-1].error("leaves no type to choose", "type")
        return [kind for kind in TYPES if kind in found and not (kind == "integer" and "number" in found)]

    def _typed(self, kind: str, plain: list[Part]) -> str:
        match kind:
            case "object":
                return objects.expression(self, plain)
            case "array":
                return arrays.expression(self, plain)
            case "string":
                return strings.expression(self, plain)
            case "integer" | "number":
                return numbers_of(plain, kind)
            case "boolean":
                return '"true" | "false"'
            case _:
                return '"null"'
