"""Generators of random grammars and of random sentences of a grammar."""

from __future__ import annotations

import random
from collections.abc import Callable

from model_host.grammar.gbnf.matcher import Matcher
from model_host.grammar.gbnf.program import Program, compile_grammar
from model_host.grammar.gbnf.syntax import (
    Alternatives,
    Characters,
    Concatenation,
    Literal,
    Node,
    Reference,
    Repeat,
    Rules,
    Token,
)

_ENDLESS = 10**6


class Sentences:
    """Random sentences of the rule ``root``; deep ones end on the shortest path."""

    def __init__(self, rules: Rules, chance: random.Random, *, depth: int = 12, times: int = 4) -> None:
        self._rules = rules
        self._chance = chance
        self._depth = depth
        self._times = times
        self._heights = dict.fromkeys(rules, _ENDLESS)
        changed = True
        while changed:
            changed = False
            for rule, node in rules.items():
                height = 1 + self._height(node)
                if height < self._heights[rule]:
                    self._heights[rule], changed = height, True

    @property
    def finite(self) -> bool:
        """Whether the grammar has any sentence."""
        return self._heights["root"] < _ENDLESS

    def one(self) -> str:
        """Draw a sentence; characters of a set come from the ends and the middle of its ranges."""
        assert self.finite
        made: list[str] = []
        self._write(self._rules["root"], self._depth, made)
        return "".join(made)

    def _height(self, node: Node) -> int:
        match node:
            case Concatenation():
                return max((self._height(item) for item in node.items), default=0)
            case Alternatives():
                return min(self._height(item) for item in node.items)
            case Repeat():
                return self._height(node.item) if node.least else 0
            case Reference():
                return self._heights[node.rule]
            case Token():
                return _ENDLESS  # no text
            case _:
                return 0

    def _write(self, node: Node, depth: int, made: list[str]) -> None:
        match node:
            case Literal():
                made.append(node.text)
            case Characters():
                low, high = self._chance.choice(node.ranges)
                made.append(chr(self._chance.choice([low, high, self._chance.randint(low, high)])))
            case Concatenation():
                for item in node.items:
                    self._write(item, depth, made)
            case Alternatives():
                ways = [way for way in node.items if self._height(way) < max(depth, self._least(node))]
                self._write(self._chance.choice(ways), depth, made)
            case Repeat():
                for _ in range(self._count(node, depth)):
                    self._write(node.item, depth, made)
            case Reference():
                self._write(self._rules[node.rule], depth - 1, made)

    def _least(self, node: Alternatives) -> int:
        return 1 + min(self._height(way) for way in node.items)

    def _count(self, node: Repeat, depth: int) -> int:
        if self._height(node.item) >= depth:
            return node.least
        most = node.least + self._times if node.most is None else min(node.most, node.least + self._times)
        return self._chance.randint(node.least, most)


def accepts(matcher: Matcher, text: str) -> bool:
    """Whether a new matcher accepts the whole text, byte by byte."""
    for byte in text.encode():
        if not matcher.allows(-1, bytes([byte])):
            return False
        matcher.accept(-1, bytes([byte]))
    return matcher.may_end


def takes(grammar: str | Program, text: str) -> bool:
    """Whether ``text`` is a sentence of ``grammar``, which names no tokens."""
    program = compile_grammar(grammar, int) if isinstance(grammar, str) else grammar
    return accepts(Matcher(program), text)


def random_grammar(chance: random.Random, rules: int = 5, alphabet: str = "abc") -> str:
    """GBNF over few rules and characters; often left-recursive, ambiguous or endless."""
    names = ["root", *(f"r{number}" for number in range(1, rules))]

    def symbol(depth: int) -> str:
        kinds: list[Callable[[], str]] = [
            lambda: '"' + "".join(chance.choices(alphabet, k=chance.randint(0, 3))) + '"',
            lambda: f"[{''.join(sorted(set(chance.choices(alphabet, k=2))))}]",
            lambda: f"[^{chance.choice(alphabet)}]",
            lambda: chance.choice(names),
            lambda: chance.choice(names),
            lambda: f"({body(depth + 1)})" if depth < 2 else "root",
        ]
        repeat = chance.choice(["", "", "", "?", "*", "+", "{2}", "{0,2}", "{1,}"])
        made = chance.choices(kinds, [4, 2, 1, 2, 2, 2])[0]()
        return made + (repeat if made != '""' else "")

    def body(depth: int) -> str:
        ways = [
            " ".join(symbol(depth) for _ in range(chance.randint(1, 3))) for _ in range(chance.randint(1, 3))
        ]
        return " | ".join(ways)

    return "\n".join(f"{name} ::= {body(0)}" for name in names) + "\n"
