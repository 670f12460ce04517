"""Checks a GBNF grammar before llama.cpp sees it. Pure.

llama.cpp looks for left recursion without remembering what it has seen, and keeps one stack for every way a rule
can begin. Both grow with the number of those ways, which a grammar of a few hundred bytes can make astronomical,
so they are counted here first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_NESTING = 64  # parentheses; llama.cpp's parser recurses
MAX_BEGINNINGS = 20_000
MAX_REPETITION = 2000  # llama.cpp refuses more; refused here with a message that says so

_TOKEN = re.compile(
    r"""(?P<skip>\s+|\#[^\n\r]*)
      | (?P<text>"(?:\\.|[^"\\])*"|\[(?:\\.|[^\]\\])*\]|!?<[^>\n]*>|\.)
      | (?P<rule>[A-Za-z0-9-]+)(?P<head>\s*::=)?
      | (?P<bar>\|) | (?P<open>\() | (?P<close>\))
      | (?P<repeat>[*+?]|\{[^}]*\})""",
    re.DOTALL | re.VERBOSE,
)


class GrammarError(ValueError):
    """The grammar or JSON schema cannot be used; the message says why."""


@dataclass(slots=True)
class _Item:
    rule: str | None  # None: characters
    optional: bool = False
    times: int = 1


@dataclass(frozen=True, slots=True)
class _Size:
    beginnings: int  # ways to begin the rule
    empty: bool  # the rule may stand for nothing


_Rules = dict[str, list[list[_Item]]]


def check_grammar(grammar: str) -> None:
    """Raise GrammarError for what does not parse, recurs on the left, or would exhaust llama.cpp's parser."""
    if "\0" in grammar:
        raise GrammarError("the grammar contains a NUL character")
    rules = _parse(grammar)
    if "root" not in rules:
        raise GrammarError("the grammar has no rule `root`")
    sizes: dict[str, _Size] = {}
    for rule in rules:
        _measure(rule, rules, sizes)
    for rule, size in sizes.items():
        if size.beginnings > MAX_BEGINNINGS:
            raise GrammarError(
                f"the rule `{rule}` can begin in more than {MAX_BEGINNINGS} ways; make it simpler"
            )


def _parse(grammar: str) -> _Rules:
    rules: _Rules = {}
    # The alternatives being read: of the present rule, and of the groups open in it.
    levels: list[list[list[_Item]]] = []
    at = 0
    while at < len(grammar):
        match = _TOKEN.match(grammar, at)
        if match is None:
            raise GrammarError(f"the grammar does not parse at {grammar[at : at + 20]!r}")
        at = match.end()
        if match["skip"] is not None:
            continue
        if match["head"] is not None:
            if len(levels) > 1:
                raise GrammarError(f"a `)` is missing before the rule `{match['rule']}`")
            levels = [[[]]]
            rules[match["rule"]] = levels[0]
        elif not levels:
            raise GrammarError("the grammar does not begin with a rule `name ::= …`")
        else:
            _read(match, levels, rules)
    if len(levels) > 1:
        raise GrammarError("a `)` is missing at the end of the grammar")
    return rules


def _read(match: re.Match[str], levels: list[list[list[_Item]]], rules: _Rules) -> None:
    """One token of a rule's right side."""
    sequence = levels[-1][-1]
    if match["text"] is not None:
        sequence.append(_Item(None, optional=match["text"] == '""'))
    elif match["rule"] is not None:
        sequence.append(_Item(match["rule"]))
    elif match["bar"] is not None:
        levels[-1].append([])
    elif match["open"] is not None:
        if len(levels) > MAX_NESTING:
            raise GrammarError(f"the grammar is nested deeper than {MAX_NESTING} parentheses")
        levels.append([[]])
    elif match["close"] is not None:
        if len(levels) == 1:
            raise GrammarError("the grammar has a `)` without a `(`")
        group = f"({len(rules)}"  # no rule of the grammar can have this name
        rules[group] = levels.pop()
        levels[-1][-1].append(_Item(group))
    elif not sequence:
        raise GrammarError(f"`{match['repeat']}` has nothing before it to repeat")
    else:
        _repeat(sequence[-1], match["repeat"])


def _repeat(item: _Item, sign: str) -> None:
    numbers = [int(number[:9]) for number in re.findall(r"[0-9]+", sign)]
    if numbers and max(numbers) > MAX_REPETITION:
        raise GrammarError(f"`{sign[:40]}` repeats more than {MAX_REPETITION} times")
    least = {"*": 0, "+": 1, "?": 0}.get(sign, numbers[0] if numbers and sign[1:2] != "," else 0)
    item.optional = item.optional or least == 0
    item.times *= max([2, *numbers])


def _measure(rule: str, rules: _Rules, sizes: dict[str, _Size]) -> None:
    """Fill ``sizes`` for a rule and all that it can begin with; a stack of our own, because chains are long."""
    if rule in sizes:
        return
    open_rules = {rule: _walk(rule, rules, sizes)}
    while open_rules:
        current = next(reversed(open_rules))
        needed = next(open_rules[current], None)
        if needed is None:
            del open_rules[current]
        elif needed not in rules:
            raise GrammarError(f"the rule `{needed}` is not defined")
        elif needed in open_rules:
            raise GrammarError(f"the rule `{needed}` is left-recursive: it can begin with itself")
        else:
            open_rules[needed] = _walk(needed, rules, sizes)


def _walk(rule: str, rules: _Rules, sizes: dict[str, _Size]) -> Iterator[str]:
    """Measure one rule; yields the rules whose size it needs first."""
    beginnings, empty = 1, False
    for sequence in rules[rule]:
        for item in sequence:
            nullable = item.optional
            if item.rule is None:
                beginnings += 1
            else:
                if item.rule not in sizes:
                    yield item.rule
                size = sizes[item.rule]
                nullable = nullable or size.empty
                beginnings += size.beginnings * (item.times if size.empty else 1)
            if not nullable:
                break
        else:
            empty = True
    sizes[rule] = _Size(min(beginnings, MAX_BEGINNINGS + 1), empty)
