"""From a schema to a grammar: one rule for all that holds at one place, and a list of places still to do."""

from __future__ import annotations

from typing import Any

import msgspec

from model_host.grammar.gbnf.program import LeftRecursionError, Program
from model_host.grammar.gbnf.syntax import GrammarError, Literal, Node, Reference, Rules, either
from model_host.grammar.schema import arrays, constants, numbers, objects, oneof, strings
from model_host.grammar.schema.keywords import BY_TYPE, TYPES, types_of, unsupported
from model_host.grammar.schema.notation import JsonNotation
from model_host.grammar.schema.parts import MAX_CHAIN, Document, Part, SchemaBranches

MAX_SCHEMA_BYTES = 64 * 1024
MAX_SIZE = 20_000  # rules, and schemas that hold at their places


def schema_to_grammar(
    schema: dict[str, Any] | bool,
    notation: JsonNotation | None = None,
    *,
    lenient: bool = False,
    prefix: str = "",
) -> Program:
    """A grammar for values written as JSON unless another notation is given. ``prefix``: of the rules' names.

    Raises GrammarError with the path of what is malformed, contradictory, or not supported. ``lenient``: what is not
    supported is left out of the grammar instead, which then allows more than the schema.
    """
    try:
        size = len(msgspec.json.encode(schema))
        if size > MAX_SCHEMA_BYTES:
            raise GrammarError(f"the JSON schema has {size} bytes, over the limit of {MAX_SCHEMA_BYTES}")
        rules = Converter(schema, notation or JsonNotation(), lenient=lenient, prefix=prefix).rules
        program = Program(rules, f"{prefix}root")
    except RecursionError:
        raise GrammarError("the JSON schema is nested too deeply") from None
    except UnicodeEncodeError:
        raise GrammarError(
            "the JSON schema contains half of a surrogate pair, which no text contains"
        ) from None
    except LeftRecursionError:
        raise GrammarError("the JSON schema refers to itself without anything between") from None
    if not program.can_end():
        raise GrammarError(
            "the JSON schema never comes to an end: every value that satisfies it contains another"
        )
    return program


class Converter:
    """One schema and its :attr:`rules`."""

    def __init__(self, schema: Any, notation: JsonNotation, *, lenient: bool, prefix: str) -> None:
        self.notation = notation
        self.lenient = lenient
        self.rules: Rules = dict(notation.rules)
        self._prefix = prefix
        self._size = 0
        self._document = Document(schema)
        self._places: dict[frozenset[tuple[str, ...]], Reference] = {}  # what holds at a place → its rule
        self._to_do: list[tuple[str, tuple[Part, ...]]] = []
        self.place((self._document.root,), "root")
        while self._to_do:
            rule, parts = self._to_do.pop()
            self.rules[rule] = self._expression(parts)

    def place(self, parts: tuple[Part, ...], name: str | None = None) -> Reference:
        """The rule for a value for which all ``parts`` hold."""
        key = frozenset(self._without_detours(part).identity for part in parts)
        known = self._places.get(key)
        if known is None:
            self._size += len(parts)
            known = self._places[key] = self.rule(Literal(""), name)
            self._to_do.append((known.rule, parts))
        return known

    def rule(self, node: Node, name: str | None = None) -> Reference:
        """A new rule that stands for ``node``."""
        name = f"{self._prefix}{name or len(self.rules)}"
        self.rules[name] = node
        self._size += 1
        if self._size > MAX_SIZE:
            raise GrammarError("the JSON schema makes too large a grammar; make it simpler")
        return Reference(name)

    def refuse(self, part: Part, problem: str, key: str | None = None) -> None:
        """Raise GrammarError for what is not supported, unless it may be left out."""
        if not self.lenient:
            raise part.error(problem, key)

    def _without_detours(self, part: Part) -> Part:
        """What a schema with nothing but a `$ref` refers to."""
        for _ in range(MAX_CHAIN):
            if not isinstance(part.schema, dict) or part.schema.keys() != {"$ref"} or part.sealed_by:
                break
            part = self._document.target(part)
        return part

    def _expression(self, parts: tuple[Part, ...]) -> Node:
        plain, choices = self._document.unfold(parts)
        for part in plain:
            if part.schema is False:
                raise part.error("allows no value")
        plain = [self._known_words(part) for part in plain if part.schema is not True]
        if choices:
            return self._choose(plain, choices[0])
        listed = constants.listed(plain)
        if listed is not None:
            return constants.expression(self, plain, listed)
        types = self._types(plain)
        return Reference("value") if types is None else either(self._typed(kind, plain) for kind in types)

    def _choose(self, plain: list[Part], choice: SchemaBranches) -> Node:
        """One of the branches of a choice, with all that holds besides."""
        branches = [branch for branch in choice.branches if branch.schema is not False]
        if not branches:
            raise choice.owner.error(f"leaves no branch of `{choice.key}`", choice.key)
        if choice.key == "oneOf" and not self.lenient:
            oneof.check(self._document, plain, branches, choice.owner)
        beside = [
            part.less("$ref", "allOf", *[choice.key] * (part.path == choice.owner.path)) for part in plain
        ]
        return either(self.place((*beside, branch)) for branch in branches)

    def _known_words(self, part: Part) -> Part:
        """The part, once it is clear that all its keywords are honoured."""
        problems = unsupported(part)
        for key, problem in problems.items():
            self.refuse(part, problem, key)
        return part.less(*problems) if problems else part

    def _types(self, plain: list[Part]) -> list[str] | None:
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

    def _typed(self, kind: str, plain: list[Part]) -> Node:
        match kind:
            case "object":
                return objects.expression(self, plain)
            case "array":
                return arrays.expression(self, plain)
            case "string":
                return strings.expression(self, plain)
            case "integer" | "number":
                return numbers.expression(plain, kind)
            case "boolean":
                return either([Literal("true"), Literal("false")])
            case _:
                return Literal("null")
