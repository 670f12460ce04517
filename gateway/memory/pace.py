"""How long running work of the model still takes, from the speeds at which earlier work and this one went.

A message that finds its conversation being compacted waits for the summary when that ends soon, and stops it otherwise.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from gateway.inference.interface import GenerationEvent
from model_host.protocol import Delta, Finished, Prefill, Queued, Started

# What a call adds to the speeds; so the last five or so count.
_WEIGHT = 0.2
# From so many tokens on a call's own speed of writing says more than that of earlier ones.
_OWN_SPEED_TOKENS = 8
# A text that has grown beyond what was expected is expected to grow by a quarter more.
_GROWTH = 1.25


class Rate:
    """Tokens a second over the last calls, long ones weighing more; None before the first."""

    def __init__(self) -> None:
        self._tokens = self._seconds = 0.0

    def add(self, tokens: float, seconds: float) -> None:
        """A call that took ``seconds`` for ``tokens``."""
        if tokens > 0 and seconds > 0:
            self._tokens = (1 - _WEIGHT) * self._tokens + tokens
            self._seconds = (1 - _WEIGHT) * self._seconds + seconds

    @property
    def value(self) -> float | None:
        """Tokens a second."""
        return self._tokens / self._seconds if self._seconds else None


class Work:
    """One call of the model while it runs. ``following`` calls like it come after it."""

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
        """Note an event of the call."""
        match event:
            case Started(prompt_tokens=prompt, cached_tokens=cached):
                self._prompt = self._unread = prompt - cached
            case Prefill(done=done, total=total):
                self._unread = total - done
            case Delta(tokens=tokens):
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
        """Until it and what follows has ended; None when that is not known, as for a call that has not begun."""
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
    """The speeds of a model, and the work that it does for conversations in the background."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock  # seconds
        self.reading = Rate()
        self.writing = Rate()
        self._shares: dict[str, float] = {}  # of the tokens that a prompt's output may have: how many it has
        self._running: defaultdict[str, set[Work]] = defaultdict(set)  # by conversation

    @contextmanager
    def working(self, conversation: str, name: str, most: int, following: int = 0) -> Iterator[Work]:
        """Inside the block a call of the prompt ``name`` runs, with at most ``most`` tokens of output."""
        work = Work(self, name, most, following)
        self._running[conversation].add(work)
        try:
            yield work
        finally:
            self._running[conversation].discard(work)
            if not self._running[conversation]:
                del self._running[conversation]

    def seconds_left(self, conversation: str) -> float | None:
        """Until all calls for it that run now have ended: 0 when none does, None when it is not known."""
        left = [work.seconds_left() for work in self._running.get(conversation, ())]
        known = [seconds for seconds in left if seconds is not None]
        return max(known, default=0.0) if len(known) == len(left) else None

    def expected(self, name: str, most: int) -> float:
        """How many tokens an output of at most ``most`` will have: its share as with the ones before, at first all."""
        return self._shares.get(name, 1.0) * most

    def measure(self, end: Finished) -> None:
        """Any call of the model has ended: take its speeds."""
        self.reading.add(end.prompt_tokens - end.cached_tokens, end.prefill_seconds)
        self.writing.add(end.completion_tokens, end.decode_seconds)

    def ended(self, name: str, share: float) -> None:
        """An output of the prompt ``name`` had this share of the tokens that it might have had."""
        known = self._shares.get(name, share)
        self._shares[name] = known + _WEIGHT * (share - known)
