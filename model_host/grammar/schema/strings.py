"""Strings: their length, `pattern` and `format`. Of each format only the usual forms are allowed."""

from __future__ import annotations

import json

from model_host.grammar.gbnf.syntax import MAX_REPETITION, Node, Reference, Repeat
from model_host.grammar.schema.keywords import greatest, least
from model_host.grammar.schema.parts import Part, RuleBuilder
from model_host.grammar.schema.pattern import length, parse_pattern

_YEAR = "[1-9][0-9]{3}"
_LEAP_YEAR = "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)"
_MONTH_AND_DAY = (
    "(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
)
_DATE = f"(?:{_YEAR}-{_MONTH_AND_DAY}|{_LEAP_YEAR}-02-29)"
_HOUR_AND_MINUTE = "(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_TIME = rf"{_HOUR_AND_MINUTE}:[0-5][0-9](?:\.[0-9]{{1,6}})?(?:Z|[+-]{_HOUR_AND_MINUTE})"
_N = "[0-9]{1,4}"
_DAYS = f"(?:{_N}Y(?:{_N}M(?:{_N}D)?)?|{_N}M(?:{_N}D)?|{_N}D)"
_HOURS = f"T(?:{_N}H(?:{_N}M(?:{_N}S)?)?|{_N}M(?:{_N}S)?|{_N}S)"
_LABEL = "[a-z][a-z0-9]{0,11}(?:-[a-z0-9]{1,12}){0,2}"
_HOST = rf"{_LABEL}(?:\.{_LABEL}){{0,3}}"
_DOMAIN = r"(?:[a-z0-9]{1,20}\.){1,3}[a-z]{2,12}"
_BYTE = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_URL_TEXT = "[A-Za-z0-9._~!$&'()*+,;=:@-]"

_FORMATS = {
    name: f"^(?:{shape})$"
    for name, shape in {
        "date": _DATE,
        "time": _TIME,
        "date-time": f"{_DATE}T{_TIME}",
        "duration": f"P(?:{_DAYS}(?:{_HOURS})?|{_HOURS}|{_N}W)",
        "uuid": "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        "email": rf"[A-Za-z0-9_]{{1,20}}(?:[.+-][A-Za-z0-9_]{{1,20}}){{0,2}}@{_DOMAIN}",
        "hostname": _HOST,
        "ipv4": rf"{_BYTE}(?:\.{_BYTE}){{3}}",
        "ipv6": "[0-9a-f]{1,4}(?::[0-9a-f]{1,4}){7}",
        "uri": rf"https?://{_DOMAIN}(?::[1-9][0-9]{{0,3}})?(?:/{_URL_TEXT}*)*(?:\?{_URL_TEXT}*)?(?:#{_URL_TEXT}*)?",
    }.items()
}


def expression(builder: RuleBuilder, parts: list[Part]) -> Node:
    shortest, longest = greatest(parts, "minLength"), least(parts, "maxLength")
    shapes = _shapes(builder, parts)
    limited = [part for part in parts if {"minLength", "maxLength"} & part.schema.keys()]
    last = limited[-1] if limited else parts[-1]
    if longest is not None and longest < shortest:
        raise last.error(f"wants a string of at least {shortest} and at most {longest} characters")
    if shapes:
        (part, key, node), *more = shapes.values()
        for other, second, _ in more:
            builder.refuse(other, "has `pattern` or `format` where another one holds already", second)
        low, high = length(node)
        if low < shortest or (longest is not None and (high is None or high > longest)):
            allowed = f"{low} or more" if high is None else f"{low} to {high}"
            builder.refuse(
                last,
                f"limits the length of a string whose `{key}` allows {allowed} characters; put the limit into a "
                "`pattern`",
            )
        try:
            return builder.notation.string(builder.notation.text(node))
        except ValueError as error:
            raise part.error(str(error), key) from None
    if shortest == 0 and longest is None:
        return Reference("string")
    if max(shortest, longest or 0) > MAX_REPETITION:
        raise last.error(
            f"counts more than {MAX_REPETITION} characters; leave the limit out, or take a smaller one"
        )
    return builder.notation.string(Repeat(Reference("character"), shortest, longest))


def _shapes(builder: RuleBuilder, parts: list[Part]) -> dict[str, tuple[Part, str, Node]]:
    """The distinct values of `pattern` and `format`, each with its part, its keyword and its tree."""
    found: dict[str, tuple[Part, str, Node]] = {}
    for part in parts:
        for key in ("pattern", "format"):
            if key not in part.schema:
                continue
            value = part.schema[key]
            if not isinstance(value, str):
                raise part.error(f"has {json.dumps(value)[:40]} for `{key}`; it must be a string", key)
            expression = value if key == "pattern" else _FORMATS.get(value)
            if expression is None:
                builder.refuse(
                    part, f"has the format {value[:40]!r}; supported are {', '.join(_FORMATS)}", key
                )
                continue
            try:
                found[f"{key} {value}"] = part, key, parse_pattern(expression)
            except ValueError as error:
                builder.refuse(part, f"has a `pattern` that is not supported: {error}", key)
    return found
