"""Compiles a grammar to a flat program, which :mod:`model_host.grammar.gbnf.matcher` runs."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from graphlib import CycleError, TopologicalSorter

from model_host.grammar.gbnf.parser import parse
from model_host.grammar.gbnf.syntax import (
    Alternatives,
    Characters,
    Concatenation,
    GrammarError,
    Literal,
    Node,
    Range,
    Reference,
    Repeat,
    Rules,
    Token,
)

MAX_STEPS = 400_000
MAX_BEGINNINGS = 20_000
_SHOWN = 6  # rules of a cycle that an error names

# Instructions, in ``Program.kinds``. The operand is at the same index of ``Program.operands``.
CHARACTER = 0  # accept a character; operand: the root of its automaton in ``Program.edges``
TOKEN = 1  # accept the token of this id
OTHER_TOKEN = 2  # accept any token with text except the one of this id
CALL = 3  # push the next step as the return address, and go to this one
FORK = 4  # go to the next step and to this one
JUMP = 5  # go to this step
RETURN = 6  # go to the return address


class LeftRecursionError(GrammarError):
    """A rule can begin with itself, so that following it makes no progress."""


class Program:
    """The steps of all rules, ``root`` at :attr:`start`, and the automata of their characters (`edges`).

    Raises GrammarError for rules that are too large, left-recursive, or can begin in too many ways.
    """

    def __init__(self, rules: Rules, root: str = "root") -> None:
        self.rules = rules
        self.kinds = bytearray()
        self.operands: list[int] = []
        self._utf8 = Utf8()
        self.edges = self._utf8.edges
        self._names: list[str] = []
        self._entries: list[int] = []  # the first step of each rule
        calls: list[tuple[int, str]] = []
        for rule, node in rules.items():
            self._names.append(rule)
            self._entries.append(len(self.kinds))
            self._write(node, calls)
            self._step(RETURN)
        entries = dict(zip(self._names, self._entries, strict=True))
        for step, rule in calls:
            self.operands[step] = entries[rule]
        self.start = entries[root]
        for step, kind in enumerate(self.kinds):  # shorten chains of jumps
            if kind in (JUMP, FORK):
                self.operands[step] = self._behind(self.operands[step])
        self._check()

    def _behind(self, step: int) -> int:
        """Where ``step`` leads when all it does is jump."""
        while self.kinds[step] == JUMP:
            step = self.operands[step]
        return step

    # ------------------------------------------------------------------ writing

    def _step(self, kind: int, operand: int = 0) -> int:
        if len(self.kinds) >= MAX_STEPS:
            raise GrammarError(
                f"the grammar is too large: with its repetitions written out it has more than {MAX_STEPS} "
                f"steps (in the rule `{self._names[-1][:60]}`)"
            )
        self.kinds.append(kind)
        self.operands.append(operand)
        return len(self.kinds) - 1

    def _write(self, node: Node, calls: list[tuple[int, str]]) -> None:
        match node:
            case Literal():
                for character in node.text:
                    self._step(CHARACTER, self._utf8.root(((ord(character), ord(character)),)))
            case Characters():
                self._step(CHARACTER, self._utf8.root(node.ranges))
            case Token():
                self._step(OTHER_TOKEN if node.negated else TOKEN, node.number)
            case Reference():
                calls.append((self._step(CALL), node.rule))
            case Concatenation():
                for item in node.items:
                    self._write(item, calls)
            case Alternatives():
                ends = []
                for item in node.items[:-1]:
                    fork = self._step(FORK)
                    self._write(item, calls)
                    ends.append(self._step(JUMP))
                    self.operands[fork] = len(self.kinds)
                self._write(node.items[-1], calls)
                self._lead_here(ends)
            case Repeat():
                for _ in range(node.least):
                    self._write(node.item, calls)
                forks = []
                for _ in range(1 if node.most is None else node.most - node.least):
                    forks.append(self._step(FORK))
                    self._write(node.item, calls)
                if node.most is None:
                    self._step(JUMP, forks[0])
                self._lead_here(forks)

    def _lead_here(self, steps: list[int]) -> None:
        for step in steps:
            self.operands[step] = len(self.kinds)

    # ------------------------------------------------------------------ checking

    def can_end(self) -> bool:
        """Whether any finite text matches."""
        return self.start in self._spread(through_characters=True)[0]

    def _spread(self, *, through_characters: bool) -> tuple[set[int], dict[int, list[int]]]:
        """The rules that can return without accepting a character, and the rules that each can begin with.

        ``through_characters``: those that can return at all, and the rules that each contains. Rules are given by their
        first steps; -1 stands for a beginning that is not a rule. No step is visited twice.
        """
        done: set[int] = set()
        begins: dict[int, list[int]] = {entry: [] for entry in self._entries}
        waiting: dict[int, list[int]] = defaultdict(list)  # by rule: the steps after its calls
        seen = bytearray(len(self.kinds))
        pending = list(self._entries)
        while pending:
            step = pending.pop()
            if seen[step]:
                continue
            seen[step] = 1
            kind, operand = self.kinds[step], self.operands[step]
            rule = self._entries[bisect_right(self._entries, step) - 1]
            if kind == RETURN:
                done.add(rule)
                pending += waiting.pop(rule, [])
            elif kind == CALL:
                begins[rule].append(operand)
                (pending if operand in done else waiting[operand]).append(step + 1)
            elif kind <= OTHER_TOKEN:
                begins[rule].append(-1)
                pending += [step + 1] if through_characters else []
            else:
                pending += [operand, step + 1] if kind == FORK else [operand]
        return done, begins

    def _check(self) -> None:
        begins = self._spread(through_characters=False)[1]
        ways = {-1: 1}  # how many ways there are to begin a rule
        try:
            for rule in TopologicalSorter(begins).static_order():
                ways[rule] = ways.get(rule, 1 + sum(ways[first] for first in begins.get(rule, [])))
                if ways[rule] > MAX_BEGINNINGS:
                    raise GrammarError(
                        f"the rule `{self._name(rule)}` can begin in more than {MAX_BEGINNINGS} ways; make it simpler"
                    )
        except CycleError as error:
            cycle: list[int] = error.args[1][:0:-1]
            at = cycle.index(min(cycle))
            names = [self._name(rule) for rule in (cycle[at:] + cycle[:at])[:_SHOWN]]
            more = ["…"] if len(cycle) >= _SHOWN else []
            shown = " → ".join([*names[: _SHOWN - len(more)], *more, names[0]])
            raise LeftRecursionError(
                f"the rule `{names[0]}` is left-recursive: it can begin with itself ({shown})"
            ) from None

    def _name(self, entry: int) -> str:
        return self._names[bisect_right(self._entries, entry) - 1][:60]


def compile_grammar(grammar: str, token_of: Callable[[int | str], int]) -> Program:
    """Parse and compile a GBNF grammar; for ``token_of`` see :func:`~model_host.grammar.gbnf.parser.parse`."""
    return Program(parse(grammar, token_of))


DONE = -1  # the character is complete

# First and last byte, both included, and the node that they lead to.
Edge = tuple[int, int, int]

_LAST_OF_LENGTH = (0x7F, 0x7FF, 0xFFFF, 0x10FFFF)
_ByteRanges = tuple[Range, ...]  # one range a byte of the character


class Utf8:
    """Automata that share equal nodes. ``edges`` has those of each node."""

    def __init__(self) -> None:
        self.edges: list[tuple[Edge, ...]] = []
        self._nodes: dict[tuple[_ByteRanges, ...], int] = {}

    def root(self, ranges: tuple[Range, ...]) -> int:
        """The node at which a character of the set begins. ``ranges`` must not contain surrogates."""
        return self._node(tuple(sequence for first, last in ranges for sequence in _split(first, last)))

    def _node(self, sequences: tuple[_ByteRanges, ...]) -> int:
        known = self._nodes.get(sequences)
        if known is not None:
            return known
        # The sequences are sorted, so the first ranges of two of them are equal or disjoint.
        rests: dict[Range, list[_ByteRanges]] = {}
        for sequence in sequences:
            rests.setdefault(sequence[0], []).append(sequence[1:])
        edges = tuple(
            (low, high, self._node(tuple(rest)) if rest[0] else DONE) for (low, high), rest in rests.items()
        )
        self.edges.append(edges)
        self._nodes[sequences] = len(self.edges) - 1
        return len(self.edges) - 1


def _split(first: int, last: int) -> list[_ByteRanges]:
    """Split code points into sequences of byte ranges whose combinations are exactly their encodings."""
    for limit in _LAST_OF_LENGTH:
        if first <= limit < last:
            return _split(first, limit) + _split(limit + 1, last)
    low, high = chr(first).encode(), chr(last).encode()
    for shift in range(6, 6 * len(low), 6):
        rest = (1 << shift) - 1
        if first & ~rest != last & ~rest:
            if first & rest:
                return _split(first, first | rest) + _split((first | rest) + 1, last)
            if last & rest != rest:
                return _split(first, (last & ~rest) - 1) + _split(last & ~rest, last)
    return [tuple(zip(low, high, strict=True))]
