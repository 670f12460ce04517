"""`oneOf`: no value that the grammar allows may satisfy two branches."""

from __future__ import annotations

from itertools import combinations

from model_host.grammar.schema.constants import canonical, kinds_of, listed
from model_host.grammar.schema.keywords import TYPES, types_of
from model_host.grammar.schema.parts import Part, RuleBuilder

MAX_BRANCHES = 200
_DEPTH = 3  # levels of properties that are compared


def check(builder: RuleBuilder, beside: list[Part], branches: list[Part], owner: Part) -> None:
    """Raise GrammarError unless no value satisfies two of the branches."""
    if len(branches) > MAX_BRANCHES:
        raise owner.error(f"has more than {MAX_BRANCHES} branches of `oneOf`; use `anyOf`", "oneOf")
    unfolded = [[*beside, *builder.unfold((branch,))[0]] for branch in branches]
    for (first, ones), (second, others) in combinations(zip(branches, unfolded, strict=True), 2):
        if not _apart(builder, ones, others, _DEPTH):
            raise owner.error(
                f"has a `oneOf` in which a value might satisfy both {first.path[-60:]} and {second.path[-60:]}; use "
                "`anyOf`, or give both a required property with different values of `const`",
                "oneOf",
            )


def _apart(builder: RuleBuilder, ones: list[Part], others: list[Part], depth: int) -> bool:
    """Whether a cheap check shows that no value satisfies both ``ones`` and ``others``."""
    if any(part.schema is False for part in (*ones, *others)):
        return True
    ones, others = ([part for part in parts if part.schema is not True] for parts in (ones, others))
    one, other = listed(ones), listed(others)
    if one is not None and other is not None:
        return {canonical(value) for value in one}.isdisjoint(map(canonical, other))
    common = _types(ones) & _types(others)
    if common != {"object"} or depth == 0:
        return not common
    if _barred(ones, others) or _barred(others, ones):
        return True
    for name in _required(ones) & _required(others):
        inner = [builder.unfold(tuple(_property(parts, name)))[0] for parts in (ones, others)]
        if _apart(builder, inner[0], inner[1], depth - 1):
            return True
    return False


def _types(parts: list[Part]) -> set[str]:
    found = set(TYPES)
    for part in parts:
        found &= types_of(part) or found
    values = listed(parts)
    return found if values is None else found & set().union(*map(kinds_of, values))


def _barred(here: list[Part], there: list[Part]) -> bool:
    """Whether a property that is required here is not allowed there."""
    closed = [part for part in there if part.schema.get("additionalProperties") is False]
    return any(name not in _names(part, "properties") for name in _required(here) for part in closed)


def _required(parts: list[Part]) -> set[str]:
    return set().union(*(_names(part, "required") for part in parts))


def _property(parts: list[Part], name: str) -> list[Part]:
    return [part.at("properties", name) for part in parts if name in _names(part, "properties")]


def _names(part: Part, key: str) -> set[str]:
    """The names that a keyword lists; none if it is malformed, which is reported elsewhere."""
    value = part.schema.get(key)
    return {name for name in value if isinstance(name, str)} if isinstance(value, list | dict) else set()
