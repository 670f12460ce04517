"""Arrays: `items`, `prefixItems`, `minItems` and `maxItems`, and older drafts' lists as `items`."""

from __future__ import annotations

from model_host.grammar.gbnf.syntax import MAX_REPETITION, Node, Repeat, optional, row
from model_host.grammar.schema.keywords import greatest, least
from model_host.grammar.schema.parts import Part, RuleBuilder


def expression(builder: RuleBuilder, parts: list[Part]) -> Node:
    prefixes = [_prefix(part) for part in parts]
    fewest, most = greatest(parts, "minItems"), least(parts, "maxItems")
    listed = max(map(len, prefixes), default=0)
    for part, prefix in zip(parts, prefixes, strict=True):
        if part.schema.get(_keys(part)[1]) is False:
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


def _keys(part: Part) -> tuple[str, str]:
    """The keywords of the first items and of those behind them."""
    if isinstance(part.schema.get("items"), list) and "prefixItems" not in part.schema:
        return "items", "additionalItems"
    return "prefixItems", "items"


def _prefix(part: Part) -> list[Part]:
    first, rest = _keys(part)
    if not isinstance(part.schema.get(rest, True), dict | bool):
        raise part.error(f"needs one schema for `{rest}`; use `prefixItems` for a list of them", rest)
    if first not in part.schema:
        return []
    prefix = part.schema[first]
    if not isinstance(prefix, list) or not prefix:
        raise part.error(f"needs a list of schemas for `{first}`", first)
    return [part.at(first, number) for number in range(len(prefix))]


def _item(part: Part, prefix: list[Part], number: int) -> Part:
    if number < len(prefix):
        return prefix[number]
    rest = _keys(part)[1]
    return part.at(rest) if rest in part.schema else Part(True, f"{part.path}/{rest}")
