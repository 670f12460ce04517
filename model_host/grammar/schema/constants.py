"""`enum` and `const`: the listed values that satisfy the other keywords."""

from __future__ import annotations

import json
from typing import Any

from model_host.grammar.gbnf.syntax import Node, either
from model_host.grammar.schema.keywords import ANYWHERE, BOUNDS, HONOURED, greatest, least, types_of
from model_host.grammar.schema.numbers import allowed
from model_host.grammar.schema.parts import Part, RuleBuilder

_CHECKED = ANYWHERE | BOUNDS | {"minLength", "maxLength"}


def listed(parts: list[Part]) -> list[Any] | None:
    """The values that every `enum` and `const` lists; None if there is neither."""
    found: list[Any] | None = None
    for part in parts:
        for key in ("enum", "const"):
            if key not in part.schema:
                continue
            values = part.schema[key] if key == "enum" else [part.schema[key]]
            if not isinstance(values, list):
                raise part.error("has an `enum` that is not a list", key)
            these = {canonical(value) for value in values}
            found = [value for value in (values if found is None else found) if canonical(value) in these]
    return found


def canonical(value: Any) -> str:
    """A text that is the same for equal JSON values, as 1 and 1.0 are, but not 1 and true."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, list):
        return f"[{','.join(map(canonical, value))}]"
    if isinstance(value, dict):
        return f"{{{','.join(f'{json.dumps(key)}:{canonical(value[key])}' for key in sorted(value))}}}"
    return json.dumps(value)


def expression(builder: RuleBuilder, parts: list[Part], values: list[Any]) -> Node:
    """One of the listed ``values`` that satisfy all ``parts``."""
    part = next(part for part in parts if "enum" in part.schema or "const" in part.schema)
    key = "enum" if "enum" in part.schema else "const"
    for other in parts:
        for word in other.schema.keys() & HONOURED - _CHECKED:
            builder.refuse(other, f"has `{word}` beside `enum` or `const`, which is not supported", word)
    fitting = [value for value in values if _fits(value, parts)]
    if not fitting:
        raise part.error("leaves no value to choose", key)
    try:
        return either(map(builder.notation.constant, fitting))
    except ValueError as error:
        raise part.error(str(error), key) from None


def _fits(value: Any, parts: list[Part]) -> bool:
    kinds = kinds_of(value)
    if any((types := types_of(part)) is not None and types.isdisjoint(kinds) for part in parts):
        return False
    if "string" in kinds:
        most = least(parts, "maxLength")
        return greatest(parts, "minLength") <= len(value) and (most is None or len(value) <= most)
    return "number" not in kinds or allowed(value, parts)


def kinds_of(value: Any) -> set[str]:
    """The types of a value: a whole number is an integer and a number."""
    match value:
        case None:
            return {"null"}
        case bool():
            return {"boolean"}
        case int() | float():
            return {"number", "integer"} if value % 1 == 0 else {"number"}
        case str():
            return {"string"}
        case list():
            return {"array"}
        case _:
            return {"object"}
