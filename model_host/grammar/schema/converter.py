"""Converts a schema to a grammar, with one rule for all that holds at one place."""

from __future__ import annotations

from typing import Any

import msgspec

from model_host.grammar.gbnf.program import LeftRecursionError, Program
from model_host.grammar.gbnf.syntax import GrammarError, Literal, Node, Reference, either
from model_host.grammar.schema import arrays, constants, numbers, objects, oneof, strings
from model_host.grammar.schema.keywords import BY_TYPE, TYPES, types_of, unsupported
from model_host.grammar.schema.notation import JsonNotation
from model_host.grammar.schema.parts import Part, RuleBuilder, SchemaBranches

MAX_SCHEMA_BYTES = 64 * 1024


def schema_to_grammar(
    schema: dict[str, Any] | bool,
    notation: JsonNotation | None = None,
    *,
    lenient: bool = False,
    prefix: str = "",
) -> Program:
    """Return a grammar of values in JSON or another notation; ``prefix`` begins the names of its rules.

    Raises GrammarError with the path of what is malformed, contradictory, or not supported. With ``lenient``, keywords
    that are not supported are ignored instead, so that the grammar allows more than the schema.
    """
    try:
        size = len(msgspec.json.encode(schema))
        if size > MAX_SCHEMA_BYTES:
            raise GrammarError(f"the JSON schema has {size} bytes, over the limit of {MAX_SCHEMA_BYTES}")
        builder = RuleBuilder(schema, notation or JsonNotation(), lenient=lenient, prefix=prefix)
        builder.place((builder.root,), "root")
        while builder.to_do:
            rule, parts = builder.to_do.pop()
            builder.rules[rule] = _expression(builder, parts)
        program = Program(builder.rules, f"{prefix}root")
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
            "the JSON schema has no finite value: every value that satisfies it contains another"
        )
    return program


def _expression(builder: RuleBuilder, parts: tuple[Part, ...]) -> Node:
    unfolded, choices = builder.unfold(parts)
    plain = []
    for part in unfolded:
        if part.schema is False:
            raise part.error("allows no value")
        if part.schema is not True:
            problems = unsupported(part)
            for key, problem in problems.items():
                builder.refuse(part, problem, key)
            plain.append(part.less(*problems) if problems else part)
    if choices:
        return _choose(builder, plain, choices[0])
    values = constants.listed(plain)
    if values is not None:
        return constants.expression(builder, plain, values)
    types = _types(plain)
    return Reference("value") if types is None else either(_typed(builder, kind, plain) for kind in types)


def _choose(builder: RuleBuilder, plain: list[Part], choice: SchemaBranches) -> Node:
    """A value that satisfies ``plain`` and a branch of ``choice``."""
    branches = [branch for branch in choice.branches if branch.schema is not False]
    if not branches:
        raise choice.owner.error(f"leaves no branch of `{choice.key}`", choice.key)
    if choice.key == "oneOf" and not builder.lenient:
        oneof.check(builder, plain, branches, choice.owner)
    beside = [part.less("$ref", "allOf", *[choice.key] * (part.path == choice.owner.path)) for part in plain]
    return either(builder.place((*beside, branch)) for branch in branches)


def _types(plain: list[Part]) -> list[str] | None:
    """The types that a value may have; None if it may be any value."""
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


def _typed(builder: RuleBuilder, kind: str, plain: list[Part]) -> Node:
    match kind:
        case "object":
            return objects.expression(builder, plain)
        case "array":
            return arrays.expression(builder, plain)
        case "string":
            return strings.expression(builder, plain)
        case "integer" | "number":
            return numbers.expression(plain, kind)
        case "boolean":
            return either([Literal("true"), Literal("false")])
        case _:
            return Literal("null")
