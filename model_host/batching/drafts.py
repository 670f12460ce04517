"""Prompt lookup: what followed the last tokens when they came up before is a guess at what follows now.

Where an output repeats its input (quotes, summaries, names, code) several tokens are read in one step instead of one.
Nothing is lost: each guessed token is sampled as always, from the logits after the tokens before it, and the
first one that differs from the guess ends it. Idea: prompt lookup decoding, https://github.com/apoorvumang/prompt-lookup-decoding
"""

from __future__ import annotations

from collections.abc import Sequence

GRAM = 3  # tokens that must have come up before
LONGEST = 8
_FIRST = 4
_WEIGHT = 0.25  # of a new result in the running share of guesses that held
# A step gets dearer with each token (measured: by a fifth to a quarter of a step with one), so fewer do not pay.
_PAYS = 0.35
_SHORT_REST, _LONG_REST = 16, 512  # tokens without guesses after too many that failed; doubled each time


class Drafter:
    """Guesses for one sequence. Turns itself off, for longer and longer, while guesses fail."""

    def __init__(self) -> None:
        self._follows: dict[tuple[int, ...], int] = {}  # index after the last place of each gram
        self._known = GRAM - 1
        self._length = _FIRST
        self._share = 0.5  # of guessed tokens that held
        self._rest = 0
        self._pause = _SHORT_REST

    def propose(self, tokens: Sequence[int], limit: int) -> list[int]:
        """At most ``limit`` tokens that may follow ``tokens``, which only ever grow from call to call."""
        if self._rest > 0:
            self._rest -= 1
            return []
        for end in range(self._known, len(tokens) - 1):
            self._follows[tuple(tokens[end - GRAM + 1 : end + 1])] = end + 1
        self._known = max(self._known, len(tokens) - 1)
        start = self._follows.get(tuple(tokens[-GRAM:]))
        if start is None:
            return []
        return list(tokens[start : start + min(limit, self._length)])

    def judge(self, proposed: int, held: int) -> None:
        """So many of the proposed tokens were the ones."""
        self._share += _WEIGHT * (held / proposed - self._share)
        self._length = min(LONGEST, 2 * self._length) if held == proposed else max(1, held + 1)
        if self._share < _PAYS:
            self._rest, self._pause = self._pause, min(_LONG_REST, 2 * self._pause)
            self._share, self._length = 0.5, _FIRST
        elif self._share > 0.5:
            self._pause = _SHORT_REST
