"""Arrays of a schema: `items`, `prefixItems` and how many there are."""

from __future__ import annotations

from model_host.grammar.gbnf.parser import MAX_REPETITION
from model_host.grammar.schema.keywords import greatest, least
from model_host.grammar.schema.notation import times
from model_host.grammar.schema.parts import Part
from model_host.grammar.schema.rules import Rules


def expression(rules: Rules, parts: list[Part]) -> str:
    """An array of which all ``parts`` hold. Read backwards: what may follow an item, and what may come first."""
    prefixes = [_prefix(part) for part in parts]
    fewest, most = greatest(parts, "minItems"), least(parts, "maxItems")
    listed = max(map(len, prefixes), default=0)
    for part, prefix in zip(parts, prefixes, strict=True):
        if part.schema.get("items") is False:
            most = len(prefix) if most is None else min(most, len(prefix))
    if most is not None and most < fewest:
        raise parts[-1].error(f"wants an array of at least {fewest} and at most {most} items")
    if max(fewest, most or 0) > MAX_REPETITION:
        raise parts[-1].error(
            f"counts more than {MAX_REPETITION} items; leave the limit out, or take a smaller one"
        )
    if most == 0:
        return '"[]"'
    comma = rules.notation.comma
    after = ""
    if most is None or most > listed:
        item = rules.place(
            tuple(_item(part, prefix, listed) for part, prefix in zip(parts, prefixes, strict=True))
        )
        if listed == 0:
            more = f"({comma} {item}){times(max(0, fewest - 1), None if most is None else most - 1)}"
            return f'"[" {item} {more} "]"' if fewest else f'"[" ({item} {more})? "]"'
        after = f"({comma} {item}){times(max(0, fewest - listed), None if most is None else most - listed)}"
    for number in reversed(range(listed if most is None else min(listed, most))):
        item = rules.place(
            tuple(_item(part, prefix, number) for part, prefix in zip(parts, prefixes, strict=True))
        )
        after = f"{comma if number else ''} {item} {after}"
        after = rules.rule(after if number < fewest else f"({after})?")
    return f'"[" {after} "]"'


def _prefix(part: Part) -> list[Part]:
    if "prefixItems" not in part.schema:
        items = part.schema.get("items", True)
        if not isinstance(items, dict | bool):
            raise part.error("needs one schema for `items`; use `prefixItems` for a list of them", "items")
        return []
    prefix = part.schema["prefixItems"]
    if not isinstance(prefix, list) or not prefix:
        raise part.error("needs a list of schemas for `prefixItems`", "prefixItems")
    return [part.at("prefixItems", number) for number in range(len(prefix))]


def _item(part: Part, prefix: list[Part], number: int) -> Part:
    if number < len(prefix):
        return prefix[number]
    return part.at("items") if "items" in part.schema else Part(True, f"{part.path}/items")
