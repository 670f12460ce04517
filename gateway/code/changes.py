"""Find the names of a file whose meaning has changed: files that looked them up are resolved again."""

from __future__ import annotations

from collections import defaultdict

from gateway.code.languages.facts import Expr, FileFacts, last_part

_DEPTH = 6


def changed_names(before: FileFacts, after: FileFacts) -> set[str]:
    """Names that appeared, vanished, or stand for something else. Lines do not count."""
    old, new = _meanings(before), _meanings(after)
    return {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}


def names_of(facts: FileFacts) -> set[str]:
    return set(_meanings(facts))


def _meanings(facts: FileFacts) -> dict[str, list[object]]:
    found: defaultdict[str, list[object]] = defaultdict(list)

    def plain(expr: Expr, depth: int = 0) -> object:
        if expr is None or depth > _DEPTH:
            return None
        if expr[0] == "c":
            return ("c", plain(facts.sites[expr[1]].callee, depth + 1))
        if expr[0] == "f":
            return ("f", facts.definitions[expr[1]].name)
        return tuple(plain(each, depth + 1) if isinstance(each, list) else each for each in expr)

    for definition in facts.definitions[1:]:
        found[last_part(definition.name)].append(
            (
                definition.kind,
                facts.definitions[definition.parent].name,
                definition.marks,
                plain(definition.result),
                [(param.name, plain(param.annotation), plain(param.default)) for param in definition.params],
                [plain(each) for each in [*definition.bases, *definition.returns, *definition.yields]],
            )
        )
    for binding in facts.bindings:
        home = facts.definitions[binding.scope]
        value = (binding.name, plain(binding.base), plain(binding.value), plain(binding.annotation))
        # A local variable matters to others by what its function returns.
        local = home.kind in ("function", "lambda") and binding.base is None
        found[home.name if local else binding.name].append(value)
    for each in facts.imports:
        found[each.alias].append((each.module, each.name, each.level))
    return found
