"""Matches text against a grammar byte by byte: a nondeterministic pushdown automaton, made deterministic lazily.

At each place in a text the grammar may be in several configurations, here called threads. All threads after the same
text form a state, and transitions between states are cached, so that most bytes cost one look-up. Return addresses form
a tree that threads share, as in Tomita's parser.

A grammar may be so ambiguous that the number of threads doubles with every character. So work is counted, and a matcher
that exceeds its allowance raises GrammarError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from model_host.grammar.gbnf.endings import Endings
from model_host.grammar.gbnf.program import (
    CALL,
    CHARACTER,
    DONE,
    FORK,
    JUMP,
    OTHER_TOKEN,
    RETURN,
    TOKEN,
    Program,
)
from model_host.grammar.gbnf.syntax import GrammarError

# In threads visited, which take a microsecond or two each. Every token adds to what is left, up to the start value.
START_ALLOWANCE = 100_000
TOKEN_ALLOWANCE = 5_000
# Threads and addresses. Beyond it, the cache is dropped except for the current state.
MAX_REMEMBERED = 200_000
MANY_THREADS = 64  # from here on threads are indexed by the bytes they accept

# A step of the program, the node of its character's automaton, and the return address as an index into the tree.
Thread = tuple[int, int, int]
_OUTSIDE = 0  # the return address of the root rule
_DEAD = 0  # the state without threads


class Matcher:
    """A text and the grammar that it follows. Its methods raise GrammarError when that takes too much work."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._endings: Endings | None = None
        self._allowance = START_ALLOWANCE
        self._forget()
        self._state = self._state_of(*self._closure([(program.start, _OUTSIDE)]))

    def _forget(self) -> None:
        self._addresses: list[tuple[int, int]] = [(-1, -1)]  # by number: step, and the address around it
        self._address_of: dict[tuple[int, int], int] = {}
        self._threads: list[tuple[Thread, ...]] = [()]  # by state
        self._ends: list[bool] = [False]  # by state
        self._states: dict[tuple[tuple[Thread, ...], bool], int] = {((), False): _DEAD}
        self._byte_threads: dict[int, list[Thread]] = {}  # by state, where some threads wait for whole tokens
        self._by_byte: dict[int, list[list[Thread]]] = {}  # by state, where there are many threads
        self._firsts: dict[int, list[bool]] = {}
        self._follow: dict[int, int] = {}  # state and byte → state
        self._lengths: dict[int, float] = {}  # by state: bytes of the shortest ending
        self._outside: dict[int, float] = {_OUTSIDE: 0.0}  # by return address: the same from there on
        self._remembered = 0

    @property
    def may_end(self) -> bool:
        """Whether the text so far is a sentence of the grammar."""
        return self._ends[self._state]

    def allows(self, token: int, piece: bytes) -> bool:
        """Whether the text may continue with a token of the bytes ``piece``; a token without bytes only by its id."""
        if self._state in self._byte_threads and any(
            self._takes_token(step, token, piece) for step, _, _ in self._threads[self._state]
        ):
            return True
        return bool(piece) and self._after_bytes(self._state, piece) != _DEAD

    def accept(self, token: int, piece: bytes) -> None:
        """Append a token that :meth:`allows` permits."""
        state = self._after(self._state, token, piece)
        assert state != _DEAD, "a token that the grammar does not allow"
        self._state = state
        self._allowance = min(self._allowance + TOKEN_ALLOWANCE, START_ALLOWANCE)
        if self._remembered > MAX_REMEMBERED:
            self._drop_cache()

    def plan_endings(self) -> None:
        """Prepare :meth:`ending_length` and :meth:`ending`, which takes long for large grammars."""
        self._endings = Endings(self._program)

    def ending_length(self, token: int, piece: bytes) -> float:
        """Bytes of the shortest text that ends the sentence after a token; infinite if none does."""
        state = self._after(self._state, token, piece)
        known = self._lengths.get(state)
        if known is None:
            self._work(len(self._threads[state]))
            known = min(map(self._length, self._threads[state]), default=math.inf)
            known = self._lengths[state] = 0.0 if self._ends[state] else known
        return known

    def ending(self, token: int | None = None, piece: bytes = b"") -> bytes:
        """The shortest text that ends the sentence, now or after a token. There must be one."""
        state = self._state if token is None else self._after(self._state, token, piece)
        if self._ends[state]:
            return b""
        assert self._endings is not None
        step, node, address = min(self._threads[state], key=self._length)
        return self._endings.text(node, [*self._outer(address), step + 1])

    def _length(self, thread: Thread) -> float:
        step, node, address = thread
        endings = self._endings
        assert endings is not None
        if self._program.kinds[step] != CHARACTER:
            return math.inf
        if address not in self._outside:
            self._outside[address] = sum(map(endings.length, self._outer(address)))
        return endings.rest(node) + endings.length(step + 1) + self._outside[address]

    def _outer(self, address: int) -> list[int]:
        """The steps to return to, the outermost first."""
        steps = []
        while address != _OUTSIDE:
            step, address = self._addresses[address]
            steps.append(step)
        return steps[::-1]

    def first_bytes(self, before: bytes = b"") -> list[bool]:
        """For each byte, whether the text may continue with ``before`` and then that byte."""
        state = self._after_bytes(self._state, before)
        known = self._firsts.get(state)
        if known is None:
            known = self._firsts[state] = [False] * 256
            for _, node, _ in self._waiting(state):
                for low, high, _ in self._program.edges[node]:
                    known[low : high + 1] = [True] * (high + 1 - low)
        return known

    def tokens(self) -> tuple[set[int], bool]:
        """Ids of tokens that the grammar names next, and whether nearly every token with bytes may come next."""
        kinds, operands = self._program.kinds, self._program.operands
        steps = [step for step, _, _ in self._threads[self._state]]
        named = {operands[step] for step in steps if kinds[step] == TOKEN}
        return named, any(kinds[step] == OTHER_TOKEN for step in steps)

    # ------------------------------------------------------------------ states

    def _after(self, state: int, token: int, piece: bytes) -> int:
        """The state after a token, as a whole and by its bytes."""
        by_bytes = self._after_bytes(state, piece) if piece else _DEAD
        if state not in self._byte_threads:
            return by_bytes
        taken = [
            (step + 1, address)
            for step, _, address in self._threads[state]
            if self._takes_token(step, token, piece)
        ]
        threads, ends = self._closure(taken)
        return self._state_of({*threads, *self._threads[by_bytes]}, ends or self._ends[by_bytes])

    def _takes_token(self, step: int, token: int, piece: bytes) -> bool:
        same = self._program.operands[step] == token
        kind = self._program.kinds[step]
        return same if kind == TOKEN else kind == OTHER_TOKEN and not same and bool(piece)

    def _after_bytes(self, state: int, piece: bytes) -> int:
        follow = self._follow
        for byte in piece:
            known = follow.get(state << 8 | byte)
            state = self._step(state, byte) if known is None else known
            if state == _DEAD:
                break
        return state

    def _step(self, state: int, byte: int) -> int:
        within: list[Thread] = []
        complete: list[tuple[int, int]] = []
        for step, node, address in self._waiting(state, byte):
            for low, high, following in self._program.edges[node]:
                if low <= byte <= high:
                    if following == DONE:
                        complete.append((step + 1, address))
                    else:
                        within.append((step, following, address))
                    break
        threads, ends = self._closure(complete)
        found = self._state_of({*threads, *within}, ends)
        self._follow[state << 8 | byte] = found
        self._remembered += 1
        return found

    def _waiting(self, state: int, byte: int | None = None) -> Sequence[Thread]:
        """The threads that accept bytes; if there are many, only those that accept ``byte``."""
        threads: Sequence[Thread] = self._byte_threads.get(state, self._threads[state])
        if byte is not None and len(threads) > MANY_THREADS:
            if state not in self._by_byte:
                self._sort_by_byte(state, threads)
            threads = self._by_byte[state][byte]
        self._work(len(threads))
        return threads

    def _sort_by_byte(self, state: int, threads: Sequence[Thread]) -> None:
        by_byte = self._by_byte[state] = [[] for _ in range(256)]
        for thread in threads:
            edges = self._program.edges[thread[1]]
            self._work(sum(high + 1 - low for low, high, _ in edges) // 8 + 1)
            for low, high, _ in edges:
                for waiting in by_byte[low : high + 1]:
                    waiting.append(thread)
            self._remembered += len(edges)

    def _state_of(self, threads: set[Thread], ends: bool) -> int:
        key = (tuple(sorted(threads)), ends)
        known = self._states.get(key)
        if known is not None:
            return known
        self._states[key] = number = len(self._threads)
        self._threads.append(key[0])
        self._ends.append(ends)
        self._remembered += len(threads) + 1
        kinds = self._program.kinds
        plain = [thread for thread in key[0] if kinds[thread[0]] == CHARACTER]
        if len(plain) < len(threads):
            self._byte_threads[number] = plain
        return number

    def _drop_cache(self) -> None:
        """Drop the cache of everything but the current state."""
        threads, ends, old = self._threads[self._state], self._ends[self._state], self._addresses
        self._forget()
        moved = {_OUTSIDE: _OUTSIDE}
        for _, _, address in threads:
            path = []
            while address not in moved:
                path.append(address)
                address = old[address][1]
            for inner in reversed(path):
                step, outer = old[inner]
                moved[inner] = self._address(step, moved[outer])
        self._work(len(moved))
        self._state = self._state_of({(step, node, moved[at]) for step, node, at in threads}, ends)

    # ------------------------------------------------------------------ threads

    def _closure(self, places: list[tuple[int, int]]) -> tuple[set[Thread], bool]:
        """The threads reachable from ``places`` without text, and whether the end of the grammar is reachable."""
        kinds, operands = self._program.kinds, self._program.operands
        pending, seen = places, set(places)
        threads: set[Thread] = set()
        ends = False
        while pending:
            self._work(1)
            step, address = pending.pop()
            kind = kinds[step]
            if kind <= OTHER_TOKEN:
                threads.add((step, operands[step] if kind == CHARACTER else 0, address))
                continue
            following: list[tuple[int, int]] = []
            if kind == CALL:
                following.append((operands[step], self._address(step + 1, address)))
            elif kind == RETURN:
                if address == _OUTSIDE:
                    ends = True
                else:
                    following.append(self._addresses[address])
            else:
                following.append((operands[step], address))
                if kind == FORK:
                    following.append((step + 1, address))
            for place in following:
                if place not in seen:
                    seen.add(place)
                    pending.append(place)
        return threads, ends

    def _address(self, step: int, outer: int) -> int:
        """The number of the return address ``step`` within ``outer``; a tail call needs none of its own."""
        program = self._program
        if program.kinds[step] == JUMP:
            step = program.operands[step]
        if program.kinds[step] == RETURN:
            return outer
        key = (step, outer)
        known = self._address_of.get(key)
        if known is None:
            known = self._address_of[key] = len(self._addresses)
            self._addresses.append(key)
            self._remembered += 1
        return known

    def _work(self, amount: int) -> None:
        self._allowance -= amount
        if self._allowance < 0:
            raise GrammarError(
                "the grammar is too ambiguous: at one place in the text it can be read in too many ways; "
                "write it so that few characters decide which rule applies"
            )
