"""From a schema to a grammar: one rule for all that holds at one place, and a list of places still to do."""

from __future__ import annotations

from typing import Any

import msgspec

from model_host.grammar.gbnf.check import LeftRecursionError, can_end, check
from model_host.grammar.gbnf.parser import parse
from model_host.grammar.gbnf.syntax import GrammarError
from model_host.grammar.schema import arrays, constants, objects, oneof, strings
from model_host.grammar.schema.bounds import numbers_of
from model_host.grammar.schema.json_notation import JsonNotation
from model_host.grammar.schema.keywords import BY_TYPE, TYPES, types_of, unsupported
from model_host.grammar.schema.notation import Notation
from model_host.grammar.schema.parts import Document, Part, SchemaBranches
from model_host.grammar.schema.rules import Rules

MAX_SCHEMA_BYTES = 64 * 1024


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
    """One schema on its way to a grammar."""

    def __init__(self, schema: Any, notation: Notation, *, lenient: bool) -> None:
        self._lenient = lenient
        self._document = Document(schema)
        self._rules = Rules(self._document, notation, lenient=lenient)

    def grammar(self) -> str:
        self._rules.place((self._document.root,), "root")
        self._rules.fixed("ws")
        while (unwritten := self._rules.unwritten()) is not None:
            name, parts = unwritten
            self._rules.define(name, self._expression(parts))
        return self._rules.text()

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
            return constants.expression(self._rules, plain, listed)
        types = _types(plain)
        if types is None:
            return self._rules.fixed("value")
        return " | ".join(self._rules.rule(self._typed(kind, plain)) for kind in types)

    def _choose(self, plain: list[Part], choices: list[SchemaBranches]) -> str:
        """One of the branches of the first choice, with all that holds besides."""
        choice = choices[0]
        branches = [branch for branch in choice.branches if branch.schema is not False]
        if not branches:
            raise choice.owner.error(f"leaves no branch of `{choice.key}`", choice.key)
        if choice.key == "oneOf" and not self._lenient:
            oneof.check(self._document, plain, branches, choice.owner)
        beside = [
            part.less("$ref", "allOf", *[choice.key] * (part.path == choice.owner.path)) for part in plain
        ]
        return " | ".join(self._rules.place((*beside, branch)) for branch in branches)

    def _known_words(self, part: Part) -> Part:
        """The part, once it is clear that all its keywords are honoured."""
        problems = unsupported(part)
        if problems and not self._lenient:
            key = next(iter(problems))
            raise part.error(problems[key], key)
        return part.less(*problems) if problems else part

    def _typed(self, kind: str, plain: list[Part]) -> str:
        match kind:
            case "object":
                return objects.expression(self._rules, plain)
            case "array":
                return arrays.expression(self._rules, plain)
            case "string":
                return strings.expression(self._rules, plain)
            case "integer" | "number":
                return numbers_of(plain, kind)
            case "boolean":
                return '"true" | "false"'
            case _:
                return '"null"'


def _types(plain: list[Part]) -> list[str] | None:
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
