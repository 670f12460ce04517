"""Whether a grammar can be followed at all: no left recursion, and not too many ways to begin a rule.

Everything here takes time in proportion to the size of the grammar.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping

from model_host.grammar.gbnf.syntax import (
    Alternatives,
    Concatenation,
    GrammarError,
    Literal,
    Node,
    Reference,
    Repeat,
    Rules,
)

MAX_BEGINNINGS = 20_000
_SHOWN = 6  # rules of a circle that an error names


class LeftRecursionError(GrammarError):
    """A rule can begin with itself, so that whoever follows it comes nowhere."""


def check(rules: Rules) -> None:
    """Raise GrammarError for a rule that can begin with itself, or in too many ways."""
    empty = can_be_empty(rules)
    firsts: dict[str, Counter[str]] = {}
    for rule, node in rules.items():
        firsts[rule] = Counter()
        _find_firsts(node, empty, firsts[rule])
    beginnings: dict[str, int] = {}
    for rule in _innermost_first(firsts):
        ways = sum(times * beginnings.get(first, 1) for first, times in firsts[rule].items())
        if ways > MAX_BEGINNINGS:
            raise GrammarError(
                f"the rule `{rule[:60]}` can begin in more than {MAX_BEGINNINGS} ways; make it simpler"
            )
        beginnings[rule] = 1 + ways


def can_be_empty(rules: Rules) -> set[str]:
    """The rules that can stand for nothing."""
    return _fulfilled(rules, characters=-1)


def can_end(rules: Rules) -> set[str]:
    """The rules that can stand for something finite."""
    return _fulfilled(rules, characters=0)


def _fulfilled(rules: Rules, *, characters: int) -> set[str]:
    """The rules that need no more than they can have; ``characters``: what a character needs, -1 for too much.

    Every node counts what it still needs, as in Dowling and Gallier's algorithm for Horn
    clauses, so that none is looked at twice.
    """
    parents: list[int | str] = []  # by node: its parent, or the rule that it is all of
    needs: list[int] = []
    references: dict[str, list[int]] = defaultdict(list)
    pending: list[tuple[Node, int | str]] = [(node, rule) for rule, node in rules.items()]
    while pending:
        node, parent = pending.pop()
        number = len(parents)
        parents.append(parent)
        needs.append(_needs(node, characters))
        if isinstance(node, Reference):
            references[node.rule].append(number)
        pending += [(child, number) for child in _children(node)]
    found: set[str] = set()
    fulfilled = [number for number, need in enumerate(needs) if need == 0]
    while fulfilled:
        up = parents[fulfilled.pop()]
        if isinstance(up, str):
            found.add(up)
        for number in references[up] if isinstance(up, str) else [up]:
            needs[number] -= 1
            if needs[number] == 0:
                fulfilled.append(number)
    return found


def _needs(node: Node, characters: int) -> int:
    """How many of its children must be fulfilled for it to be so; -1: it never is."""
    match node:
        case Concatenation():
            return len(node.items)
        case Alternatives() | Reference():
            return 1
        case Repeat():
            return 1 if node.least else 0
        case Literal():
            return characters if node.text else 0
        case _:
            return characters


def _children(node: Node) -> tuple[Node, ...]:
    match node:
        case Concatenation():
            return node.items
        case Alternatives():
            return node.alternatives
        case Repeat():
            return (node.item,)
        case _:
            return ()


def _find_firsts(node: Node, empty: set[str], found: Counter[str]) -> bool:
    """Count in ``found`` what ``node`` can begin with: rules by name, anything else as ``""``.

    Returns whether it can be empty.
    """
    match node:
        case Concatenation():
            return all(_find_firsts(item, empty, found) for item in node.items)
        case Alternatives():
            ends = [_find_firsts(item, empty, found) for item in node.alternatives]
            return any(ends)
        case Repeat():
            once: Counter[str] = Counter()
            nothing = _find_firsts(node.item, empty, once)
            copies = max(node.least, node.most or 0, 1) + 1 if nothing else 1
            for first, times in once.items():
                found[first] = min(found[first] + times * copies, MAX_BEGINNINGS + 1)
            return nothing or node.least == 0
        case Reference():
            found[node.rule] += 1
            return node.rule in empty
        case _:
            found[""] += 1
            return isinstance(node, Literal) and not node.text


def _innermost_first(firsts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """The rules, each after those it can begin with. A stack of our own, because chains are long."""
    done: dict[str, None] = {}
    for start in firsts:
        path = {} if start in done else {start: iter(firsts[start])}
        while path:
            rule = next(reversed(path))
            needed = next((first for first in path[rule] if first not in done and first), None)
            if needed is None:
                del path[rule]
                done[rule] = None
            elif needed in path:
                raise LeftRecursionError(_circle([*path, needed], needed))
            else:
                path[needed] = iter(firsts[needed])
    return list(done)


def _circle(path: list[str], rule: str) -> str:
    circle = path[path.index(rule) :]
    if len(circle) > _SHOWN:
        circle = [*circle[: _SHOWN - 1], "…", rule]
    shown = " → ".join(name[:60] for name in circle)
    return f"the rule `{rule[:60]}` is left-recursive: it can begin with itself ({shown})"
