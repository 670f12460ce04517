"""Strings of a schema: their length, `pattern` and `format`."""

from __future__ import annotations

import json

from model_host.grammar.gbnf.parser import MAX_REPETITION
from model_host.grammar.gbnf.syntax import Node
from model_host.grammar.schema.formats import NAMES, parse_format
from model_host.grammar.schema.keywords import greatest, least
from model_host.grammar.schema.notation import text_of, times
from model_host.grammar.schema.parts import Part
from model_host.grammar.schema.pattern import PatternError, length, parse_pattern
from model_host.grammar.schema.rules import Rules


def expression(rules: Rules, parts: list[Part]) -> str:
    """A string of which all ``parts`` hold."""
    shortest, longest = greatest(parts, "minLength"), least(parts, "maxLength")
    shapes = _shapes(rules, parts)
    last = next(
        (part for part in reversed(parts) if {"minLength", "maxLength"} & part.schema.keys()), parts[-1]
    )
    if longest is not None and longest < shortest:
        raise last.error(f"wants a string of at least {shortest} and at most {longest} characters")
    if shapes:
        return _shaped(rules, shapes, shortest, longest, last)
    if shortest == 0 and longest is None:
        return rules.fixed("string")
    if max(shortest, longest or 0) > MAX_REPETITION:
        raise last.error(
            f"counts more than {MAX_REPETITION} characters; leave the limit out, or take a smaller one"
        )
    inside = f"{rules.fixed('character')}{times(shortest, longest)}" if longest != 0 else ""
    return rules.notation.string(inside)


def _shapes(rules: Rules, parts: list[Part]) -> dict[str, tuple[Part, str, Node]]:
    """By keyword and value: what a `pattern` or `format` makes of a string."""
    found: dict[str, tuple[Part, str, Node]] = {}
    for part in parts:
        for key in {"pattern", "format"} & part.schema.keys():
            value = part.schema[key]
            if not isinstance(value, str):
                raise part.error(f"has {json.dumps(value)[:40]} for `{key}`; it must be a string", key)
            try:
                node = parse_pattern(value) if key == "pattern" else parse_format(value)
            except PatternError as error:
                if rules.lenient:
                    continue
                raise part.error(f"has a `pattern` that is not supported: {error}", key) from None
            if node is not None:
                found[f"{key} {value}"] = part, key, node
            elif not rules.lenient:
                raise part.error(f"has the format {value[:40]!r}; supported are {', '.join(NAMES)}", key)
    return found


def _shaped(
    rules: Rules,
    shapes: dict[str, tuple[Part, str, Node]],
    shortest: int,
    longest: int | None,
    limits: Part,
) -> str:
    (part, key, node), *more = shapes.values()
    if more and not rules.lenient:
        raise more[0][0].error("has `pattern` or `format` where another one holds already", more[0][1])
    low, high = length(node)
    if (low < shortest or (longest is not None and (high is None or high > longest))) and not rules.lenient:
        allowed = f"{low} or more" if high is None else f"{low} to {high}"
        raise limits.error(
            f"limits the length of a string whose `{key}` allows {allowed} characters; put the limit into a `pattern`"
        )
    try:
        return rules.notation.string(text_of(node, rules.notation))
    except ValueError as error:
        raise part.error(str(error), key) from None
