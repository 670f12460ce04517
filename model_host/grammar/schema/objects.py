"""Objects of a schema: `properties`, `required` and `additionalProperties`."""

from __future__ import annotations

import json

from model_host.grammar.schema.keywords import greatest, least
from model_host.grammar.schema.parts import Part
from model_host.grammar.schema.rules import Rules


def expression(rules: Rules, parts: list[Part]) -> str:
    """An object of which all ``parts`` hold.

    Other properties than those that are listed come last, and only where `additionalProperties` asks for them or
    nothing is listed.
    """
    required = _required(parts)
    listed = _listed(parts, required)
    others = _others(parts)
    _check_count(rules, parts, listed, required, others)
    if others is None and not listed:
        return '"{}"'
    names = [name for part in parts for name in part.schema.get("properties", {})]
    extra = _extra(rules, [*names, *listed], others) if others is not None else None
    return f'"{{" {_members(rules, listed, required, extra)} "}}"'


def _required(parts: list[Part]) -> dict[str, Part]:
    found: dict[str, Part] = {}
    for part in parts:
        names = part.schema.get("required", [])
        if not isinstance(names, list) or any(not isinstance(name, str) for name in names):
            raise part.error(
                f"has {json.dumps(names)[:40]} for `required`; it must be a list of names", "required"
            )
        found |= dict.fromkeys(names, part)
    return found


def _listed(parts: list[Part], required: dict[str, Part]) -> dict[str, tuple[Part, ...]]:
    """By name of a property: what holds for it, in each part that says anything of it."""
    names: dict[str, None] = {}
    for part in parts:
        properties = part.schema.get("properties", {})
        if not isinstance(properties, dict):
            raise part.error("needs an object for `properties`", "properties")
        names |= dict.fromkeys(properties)
    names |= dict.fromkeys(required)
    listed = {}
    for name in names:
        holds = [found for part in parts if (found := _property(part, name)) is not None]
        barred = next((found for found in holds if found.schema is False), None)
        if barred is None:
            listed[name] = tuple(holds) or (Part(True, f"{parts[0].path}/properties/{name}"),)
        elif name in required:
            raise required[name].error(
                f"requires {name[:60]!r}, which {barred.path[:100]} does not allow", "required"
            )
    return listed


def _property(part: Part, name: str) -> Part | None:
    if name in part.schema.get("properties", {}):
        return part.at("properties", name)
    return part.at("additionalProperties") if "additionalProperties" in part.schema else None


def _others(parts: list[Part]) -> tuple[Part, ...] | None:
    """What holds for properties that are not listed; None where there are none."""
    asked = tuple(part.at("additionalProperties") for part in parts if "additionalProperties" in part.schema)
    if any(part.schema is False for part in asked):
        return None
    if asked:
        return asked
    unevaluated = any(part.schema.get("unevaluatedProperties") is False for part in parts)
    if unevaluated or any(part.schema.get("properties") or part.schema.get("required") for part in parts):
        return None
    return (Part(True, f"{parts[0].path}/additionalProperties"),)


def _check_count(
    rules: Rules,
    parts: list[Part],
    listed: dict[str, tuple[Part, ...]],
    required: dict[str, Part],
    others: tuple[Part, ...] | None,
) -> None:
    """`minProperties` and `maxProperties` hold because of the other keywords, or are refused."""
    fewest, most = greatest(parts, "minProperties"), least(parts, "maxProperties")
    if rules.lenient:
        return
    for part in parts:
        if "minProperties" in part.schema and fewest > len(required):
            raise part.error(
                "has a `minProperties` that is not supported; name as many properties in `required`",
                "minProperties",
            )
        if "maxProperties" in part.schema and most is not None and (others is not None or most < len(listed)):
            raise part.error(
                "has a `maxProperties` that is not supported; list no more `properties` than that, and set "
                "`additionalProperties` to false",
                "maxProperties",
            )


def _extra(rules: Rules, names: list[str], others: tuple[Part, ...]) -> str:
    """One property that is not listed."""
    if not names:
        name = rules.fixed("key")
    else:
        name = rules.rule("")
        rules.named(rules.notation.other_name(names, name))
    return rules.rule(f"{name} {rules.notation.colon} {rules.place(others)}")


def _members(
    rules: Rules,
    listed: dict[str, tuple[Part, ...]],
    required: dict[str, Part],
    extra: str | None,
) -> str:
    """Properties in their order. Read backwards: what may follow with something before it, and with nothing."""
    comma, colon = rules.notation.comma, rules.notation.colon
    after = first = ""
    if extra is not None:
        after = rules.rule(f"({comma} {extra})*")
        first = rules.rule(f"({extra} {after})?")
    for name in reversed(rules.notation.in_order(list(listed))):
        pair = rules.rule(f"{rules.notation.name(name)} {colon} {rules.place(listed[name])}")
        opening = f"{pair} {after}"
        if name in required:
            first = rules.rule(opening)
            after = rules.rule(f"{comma} {pair} {after}")
        else:
            first = rules.rule(f"{opening} | {first}" if first else f"({opening})?")
            after = rules.rule(f"({comma} {pair})? {after}")
    return first
