"""Arrays: `items`, `prefixItems`, `minItems` and `maxItems`."""

from __future__ import annotations

from model_host.grammar.gbnf.syntax import MAX_REPETITION, Node, Repeat, optional, row
from model_host.grammar.schema.keywords import greatest, least
from model_host.grammar.schema.parts import Part, RuleBuilder


def expression(builder: RuleBuilder, parts: list[Part]) -> Node:
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

    def item(number: int) -> Node:
        return builder.place(
            tuple(_item(part, prefix, number) for part, prefix in zip(parts, prefixes, strict=True))
        )

    alone = 0 if listed else 1  # without `prefixItems`, one item more is written without a comma before it
    behind: Node = row()
    if most is None or most > listed:
        more = None if most is None else most - listed - alone
        behind = Repeat(row(builder.notation.comma, item(listed)), max(0, fewest - listed - alone), more)
    for number in reversed(range(min(listed + alone, listed + 1 if most is None else most))):
        behind = row(*([builder.notation.comma] if number else []), item(number), behind)
        behind = builder.rule(behind if number < fewest else optional(behind))
    return row("[", behind, "]")


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
