"""Strings of a schema: their length, `pattern` and `format`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from model_host.gbnf.syntax import MAX_REPETITION, Node, Reference, Repeat
from model_host.schema.formats import NAMES, parse_format
from model_host.schema.keywords import greatest, least
from model_host.schema.parts import Part
from model_host.schema.pattern import length, parse_pattern

if TYPE_CHECKING:
    from model_host.schema.converter import Converter


def expression(converter: Converter, parts: list[Part]) -> Node:
    """A string of which all ``parts`` hold."""
    shortest, longest = greatest(parts, "minLength"), least(parts, "maxLength")
    shapes = _shapes(converter, parts)
    limited = [part for part in parts if {"minLength", "maxLength"} & part.schema.keys()]
    last = limited[-1] if limited else parts[-1]
    if longest is not None and longest < shortest:
        raise last.error(f"wants a string of at least {shortest} and at most {longest} characters")
    if shapes:
        (part, key, node), *more = shapes.values()
        if more and not converter.lenient:
            raise more[0][0].error("has `pattern` or `format` where another one holds already", more[0][1])
        low, high = length(node)
        fits = low >= shortest and (longest is None or (high is not None and high <= longest))
        if not fits and not converter.lenient:
            allowed = f"{low} or more" if high is None else f"{low} to {high}"
            raise last.error(
                f"limits the length of a string whose `{key}` allows {allowed} characters; put the limit into a "
                "`pattern`"
            )
        try:
            return converter.notation.string(converter.notation.text(node))
        except ValueError as error:
            raise part.error(str(error), key) from None
    if shortest == 0 and longest is None:
        return Reference("string")
    if max(shortest, longest or 0) > MAX_REPETITION:
        raise last.error(
            f"counts more than {MAX_REPETITION} characters; leave the limit out, or take a smaller one"
        )
    return converter.notation.string(Repeat(Reference("character"), shortest, longest))


def _shapes(converter: Converter, parts: list[Part]) -> dict[str, tuple[Part, str, Node]]:
    """By keyword and value: what a `pattern` or `format` makes of a string."""
    found: dict[str, tuple[Part, str, Node]] = {}
    for part in parts:
        for key in ("pattern", "format"):
            if key not in part.schema:
                continue
            value = part.schema[key]
            if not isinstance(value, str):
                raise part.error(f"has {json.dumps(value)[:40]} for `{key}`; it must be a string", key)
            try:
                node = parse_pattern(value) if key == "pattern" else parse_format(value)
            except ValueError as error:
                if converter.lenient:
                    continue
                raise part.error(f"has a `pattern` that is not supported: {error}", key) from None
            if node is not None:
                found[f"{key} {value}"] = part, key, node
            elif not converter.lenient:
                raise part.error(f"has the format {value[:40]!r}; supported are {', '.join(NAMES)}", key)
    return found
