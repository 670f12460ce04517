"""Estimate how long running model calls still take, from the speeds of earlier calls and their own.

A message that arrives during a compaction of its conversation waits if the estimate is short, and stops the compaction
otherwise.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gateway.inference.interface import GenerationEvent
from gateway.inference.speed import READING_WINDOW, WRITING_WINDOW, Rate
from model_host.protocol import Delta, Finished, Prefill, Queued, Started, Thought

# Weight of the newest call in the average of output lengths; about the last five count.
_WEIGHT = 0.2
# After this many tokens a call's own decode speed is a better estimate than that of earlier calls.
_OWN_SPEED_TOKENS = 8
# An output beyond its expected length is expected to grow by another quarter.
_GROWTH = 1.25


class Work:
    """A running model call, with the number of calls like it that follow."""

    def __init__(self, pace: Pace, name: str, most: int, following: int) -> None:
        self.name = name
        self.most = most
        self.following = following
        self._pace = pace
        self._prompt: int | None = None
        self._unread = 0
        self._written = 0
        self._first_at: float | None = None

    def take(self, event: GenerationEvent) -> None:
        match event:
            case Started(prompt_tokens=prompt, cached_tokens=cached):
                self._prompt = self._unread = prompt - cached
            case Prefill(done=done, total=total):
                self._unread = total - done
            case Delta(tokens=tokens) | Thought(tokens=tokens):
                self._unread = 0
                if self._first_at is None:
                    self._first_at = self._pace.clock()
                else:
                    self._written += tokens
            case Queued():
                self._prompt = None
            case Finished(completion_tokens=tokens):
                self._pace.ended(self.name, tokens / max(1, self.most))

    def seconds_left(self) -> float | None:
        """Until the call and those that follow end; None when unknown, as for a call that is still queued."""
        reading, writing = self._pace.reading.value, self._speed()
        if self._prompt is None or writing is None or (reading is None and self._prompt):
            return None
        expected = self._pace.expected(self.name, self.most)
        now = max(expected, _GROWTH * self._written) if self._written else expected
        left = max(0.0, min(now, self.most) - self._written) / writing
        if reading is None:
            return left
        again = self._prompt / reading + expected / writing
        return self._unread / reading + left + self.following * again

    def _speed(self) -> float | None:
        seconds = 0.0 if self._first_at is None else self._pace.clock() - self._first_at
        if seconds <= 0 or self._written < _OWN_SPEED_TOKENS:
            return self._pace.writing.value
        return self._written / seconds


class Pace:
    """The speeds of a model, and its running background calls by conversation."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock  # seconds
        self.reading = Rate()
        self.writing = Rate()
        self._shares: dict[str, float] = {}  # output tokens as a share of their limit, by prompt
        self._running: defaultdict[str, set[Work]] = defaultdict(set)

    @contextmanager
    def working(self, conversation: str, name: str, most: int, following: int = 0) -> Iterator[Work]:
        """Track a call of the prompt ``name`` with at most ``most`` output tokens while the block runs."""
        work = Work(self, name, most, following)
        self._running[conversation].add(work)
        try:
            yield work
        finally:
            self._running[conversation].discard(work)
            if not self._running[conversation]:
                del self._running[conversation]

    def seconds_left(self, conversation: str) -> float | None:
        """Until all its running calls end: 0 when none runs, None when unknown."""
        left = [work.seconds_left() for work in self._running.get(conversation, ())]
        known = [seconds for seconds in left if seconds is not None]
        return max(known, default=0.0) if len(known) == len(left) else None

    def expected(self, name: str, most: int) -> float:
        """Expected length of an output of at most ``most`` tokens: at first all of them."""
        return self._shares.get(name, 1.0) * most

    def measure(self, end: Finished) -> None:
        """Take the speeds of a finished call of any kind."""
        read = end.prompt_tokens - end.cached_tokens
        self.reading = self.reading.add(read, end.prefill_seconds, READING_WINDOW)
        self.writing = self.writing.add(end.completion_tokens, end.decode_seconds, WRITING_WINDOW)

    def ended(self, name: str, share: float) -> None:
        """Record that an output of the prompt ``name`` had this share of its token limit."""
        known = self._shares.get(name, share)
        self._shares[name] = known + _WEIGHT * (share - known)
