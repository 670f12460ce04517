"""Objects: `properties`, `required`, `additionalProperties` and `unevaluatedProperties`."""

from __future__ import annotations

import json
import math

from model_host.grammar.gbnf.syntax import (
    Characters,
    Node,
    Reference,
    Repeat,
    either,
    optional,
    others,
    row,
    within,
)
from model_host.grammar.schema.keywords import count
from model_host.grammar.schema.parts import Part, RuleBuilder


def expression(builder: RuleBuilder, parts: list[Part]) -> Node:
    """An object that satisfies all ``parts``.

    Unlisted properties come last, and only if `additionalProperties` asks for them or none are listed.
    """
    required = _required(parts)
    listed = _listed(parts, required)
    unlisted = _unlisted(parts)
    _check_count(builder, parts, len(required), len(listed) if unlisted is None else math.inf)
    extra = None
    if unlisted is not None:
        names = [name for part in parts for name in part.schema.get("properties", {})]
        other = _other_name(builder, [*names, *listed])
        extra = builder.rule(row(other, builder.notation.colon, builder.place(unlisted)))
    return row("{", _members(builder, listed, required, extra), "}")


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
    """The schemas of each listed property, from all parts that have one for it."""
    names: dict[str, None] = {}
    for part in parts:
        properties = part.schema.get("properties", {})
        if not isinstance(properties, dict):
            raise part.error("needs an object for `properties`", "properties")
        names |= dict.fromkeys(properties)
    listed = {}
    for name in names | dict.fromkeys(required):
        holds = [found for part in parts if (found := _property(part, name, parts)) is not None]
        barred = next((found for found in holds if found.schema is False), None)
        if barred is None:
            listed[name] = tuple(holds) or (Part(True, f"{parts[0].path}/properties/{name}"),)
        elif name in required:
            raise required[name].error(
                f"requires {name[:60]!r}, which {barred.path[:100]} does not allow", "required"
            )
    return listed


def _property(part: Part, name: str | None, parts: list[Part]) -> Part | None:
    """The schema that ``part`` has for a property; the name None stands for an unlisted one."""
    if name in part.schema.get("properties", {}):
        return part.at("properties", name)
    if "additionalProperties" in part.schema:
        return part.at("additionalProperties")
    if part.seals and not any(
        "additionalProperties" in inner.schema or name in inner.schema.get("properties", {})
        for inner in parts
        if part.path in inner.sealed_by
    ):
        return part.at("unevaluatedProperties")
    return None


def _unlisted(parts: list[Part]) -> tuple[Part, ...] | None:
    """The schemas of unlisted properties; None if there can be none."""
    asked = tuple(found for part in parts if (found := _property(part, None, parts)) is not None)
    if any(part.schema is False for part in asked):
        return None
    if asked:
        return asked
    if any(part.schema.get("properties") or part.schema.get("required") for part in parts):
        return None
    return (Part(True, f"{parts[0].path}/additionalProperties"),)


def _check_count(builder: RuleBuilder, parts: list[Part], fewest_listed: int, most_listed: float) -> None:
    """Refuse `minProperties` and `maxProperties` unless the other keywords imply them."""
    for part in parts:
        if (count(part, "minProperties") or 0) > fewest_listed:
            problem = "has a `minProperties` that is not supported; name as many properties in `required`"
            builder.refuse(part, problem, "minProperties")
        most = count(part, "maxProperties")
        if most is not None and most < most_listed:
            problem = (
                "has a `maxProperties` that is not supported; list no more `properties` than that, and set "
                "`additionalProperties` to false"
            )
            builder.refuse(part, problem, "maxProperties")


def _other_name(builder: RuleBuilder, names: list[str]) -> Node:
    """Any name except ``names``: it leaves the tree of their prefixes, or ends inside it at no name."""
    if not names:
        return Reference("key")
    notation = builder.notation
    tree: list[dict[str, int]] = [{}]  # by prefix: next character → number of the longer prefix
    ends = {0}
    for name in names:
        at = 0
        for character in name:
            if not within([(ord(character), ord(character))], notation.in_names):
                break  # unlisted names never contain this character
            if character not in tree[at]:
                tree[at][character] = len(tree)
                tree.append({})
            at = tree[at][character]
        else:
            ends.add(at)
    rules: dict[int, Node] = {}
    for at in reversed(range(len(tree))):
        ways = [row(character, rules[longer]) for character, longer in tree[at].items()]
        strange = within(
            others((ord(character), ord(character)) for character in tree[at]), notation.in_names
        )
        ways += [row(Characters(strange), notation.rest)] if strange else []
        ways += [row()] if at not in ends else []
        rules[at] = builder.rule(either(ways))
    return row(notation.name_quote, rules[0], notation.name_quote)


def _members(
    builder: RuleBuilder,
    listed: dict[str, tuple[Part, ...]],
    required: dict[str, Part],
    extra: Node | None,
) -> Node:
    """Properties in their order, built from the last: ``first`` has nothing before it, ``after`` something."""
    comma, colon = builder.notation.comma, builder.notation.colon
    after, first = row(), row()
    if extra is not None:
        after = builder.rule(Repeat(row(comma, extra)))
        first = builder.rule(optional(extra, after))
    for name in sorted(listed, key=builder.notation.order)[::-1]:
        try:
            written = builder.notation.name(name)
        except ValueError as error:
            raise listed[name][0].error(str(error)) from None
        pair = builder.rule(row(written, colon, builder.place(listed[name])))
        opening = row(pair, after)
        if name in required:
            first = builder.rule(opening)
            after = builder.rule(row(comma, pair, after))
        else:
            first = builder.rule(either([opening, first]))
            after = builder.rule(row(optional(comma, pair), after))
    return first
