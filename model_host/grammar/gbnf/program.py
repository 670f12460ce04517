"""A grammar as a flat program, which a stack of return addresses runs: see :mod:`model_host.grammar.gbnf.matcher`."""

from __future__ import annotations

from collections.abc import Callable

from model_host.grammar.gbnf.check import check
from model_host.grammar.gbnf.parser import parse
from model_host.grammar.gbnf.syntax import (
    Alternatives,
    Characters,
    Concatenation,
    GrammarError,
    Literal,
    Node,
    Reference,
    Repeat,
    Rules,
    Token,
)
from model_host.grammar.gbnf.utf8 import Utf8

MAX_STEPS = 400_000

# What a step does, in ``Program.kinds``; its number is in ``Program.operands``.
CHARACTER = 0  # takes the bytes that lead from the node of this number to the end of a character
TOKEN = 1  # takes the token of this number
OTHER_TOKEN = 2  # takes any token with text but this one
CALL = 3  # goes on at this step, and comes back
FORK = 4  # goes on at the next step and at this one
JUMP = 5  # goes on at this step
RETURN = 6  # goes back to where the call came from


class Program:
    """The steps of all rules; ``root`` begins at :attr:`start`.

    ``edges``: see :class:`model_host.grammar.gbnf.utf8.Utf8`.
    """

    def __init__(self, rules: Rules, token_of: Callable[[int | str], int]) -> None:
        self.kinds = bytearray()
        self.operands: list[int] = []
        self._token_of = token_of
        self._utf8 = Utf8()
        self.edges = self._utf8.edges
        self._rule = ""
        entries: dict[str, int] = {}
        self._calls: list[tuple[int, str]] = []
        for rule, node in rules.items():
            self._rule = rule
            entries[rule] = len(self.kinds)
            self._write(node)
            self._step(RETURN)
        for step, rule in self._calls:
            self.operands[step] = entries[rule]
        self.start = entries["root"]
        for step, kind in enumerate(self.kinds):  # where a jump only leads to another one
            if kind in (JUMP, FORK):
                self.operands[step] = self.behind(self.operands[step])

    def behind(self, step: int) -> int:
        """Where ``step`` leads when all it does is jump."""
        while self.kinds[step] == JUMP:
            step = self.operands[step]
        return step

    def _step(self, kind: int, operand: int = 0) -> int:
        if len(self.kinds) >= MAX_STEPS:
            raise GrammarError(
                f"the grammar is too large: with its repetitions written out it has more than {MAX_STEPS} "
                f"steps (in the rule `{self._rule[:60]}`)"
            )
        self.kinds.append(kind)
        self.operands.append(operand)
        return len(self.kinds) - 1

    def _write(self, node: Node) -> None:
        match node:
            case Literal():
                for character in node.text:
                    self._step(CHARACTER, self._utf8.root(((ord(character), ord(character)),)))
            case Characters():
                self._step(CHARACTER, self._utf8.root(node.ranges))
            case Token():
                self._step(OTHER_TOKEN if node.negated else TOKEN, self._token_of(node.name))
            case Reference():
                self._calls.append((self._step(CALL), node.rule))
            case Concatenation():
                for item in node.items:
                    self._write(item)
            case Alternatives():
                self._write_choice(node)
            case Repeat():
                self._write_repeat(node)

    def _write_choice(self, node: Alternatives) -> None:
        ends = []
        for alternative in node.alternatives[:-1]:
            fork = self._step(FORK)
            self._write(alternative)
            ends.append(self._step(JUMP))
            self.operands[fork] = len(self.kinds)
        self._write(node.alternatives[-1])
        for end in ends:
            self.operands[end] = len(self.kinds)

    def _write_repeat(self, node: Repeat) -> None:
        for _ in range(node.least):
            self._write(node.item)
        ends = []
        for _ in range(1 if node.most is None else node.most - node.least):
            ends.append(self._step(FORK))
            self._write(node.item)
        if node.most is None:
            self._step(JUMP, ends[0])
        for end in ends:
            self.operands[end] = len(self.kinds)


def compile_grammar(grammar: str, token_of: Callable[[int | str], int]) -> Program:
    """The program of a GBNF grammar; ``token_of`` gives the id of a token written ``<[7]>`` or ``<name>``.

    Raises GrammarError for what does not parse, is left-recursive, can begin in too many ways, or is too large.
    """
    rules = parse(grammar)
    check(rules)
    return Program(rules, token_of)
