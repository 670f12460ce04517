"""Prompt lookup: the tokens that followed the last few before are the draft of those that follow now.

Where output repeats its input (quotes, summaries, names, code), one step decodes several tokens instead of one. The
output stays the same: every draft token is sampled as usual, from the logits after the tokens before it, and the first
one that differs ends the draft. Idea: prompt lookup decoding, https://github.com/apoorvumang/prompt-lookup-decoding
"""

from __future__ import annotations

from collections.abc import Sequence

GRAM = 3  # tokens that must have occurred before
LONGEST = 8
_FIRST = 4
_WEIGHT = 0.25  # of a new result in the running share of accepted tokens
# Each token makes a step dearer (measured: one by a fifth to a quarter of a step), so a smaller share does not pay.
_PAYS = 0.35
_SHORT_REST, _LONG_REST = 16, 512  # tokens without drafts after too many rejections; doubled each time


class Drafter:
    """Drafts for one sequence. Pauses for longer and longer while too few tokens are accepted."""

    def __init__(self) -> None:
        self._follows: dict[tuple[int, ...], int] = {}  # gram → index after its last occurrence
        self._known = GRAM - 1
        self._length = _FIRST
        self._share = 0.5  # of draft tokens that were accepted
        self._rest = 0
        self._pause = _SHORT_REST

    def propose(self, tokens: Sequence[int], limit: int) -> list[int]:
        """At most ``limit`` tokens that may follow ``tokens``, which must only grow from call to call."""
        if self._rest > 0:
            self._rest -= 1
            return []
        for end in range(self._known, len(tokens) - 1):
            self._follows[tuple(tokens[end - GRAM + 1 : end + 1])] = end + 1
        self._known = max(self._known, len(tokens) - 1)
        start = self._follows.get(tuple(tokens[-GRAM:]))
        return [] if start is None else list(tokens[start : start + min(limit, self._length)])

    def judge(self, proposed: int, accepted: int) -> None:
        """Record how many of the ``proposed`` tokens were accepted."""
        self._share += _WEIGHT * (accepted / proposed - self._share)
        self._length = min(LONGEST, 2 * self._length) if accepted == proposed else accepted + 1
        if self._share < _PAYS:
            self._rest, self._pause = self._pause, min(_LONG_REST, 2 * self._pause)
            self._share, self._length = 0.5, _FIRST
        elif self._share > 0.5:
            self._pause = _SHORT_REST
