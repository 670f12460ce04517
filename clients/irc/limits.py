"""Limits over time: token buckets, backoff, and a dictionary of the latest entries."""

from __future__ import annotations

import random
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

_MAX_BUCKETS = 4096

K = TypeVar("K")
V = TypeVar("V")


class LatestDict(OrderedDict[K, V]):
    """Keeps the ``limit`` entries that were set last."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._limit:
            self.popitem(last=False)


class Buckets:
    """Token buckets by name: ``burst`` at once, then one every ``seconds``; 0 is no limit. ``clock`` is in seconds."""

    def __init__(self, burst: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = float(burst)
        self._seconds = seconds
        self._clock = clock
        # Tokens, and when they were counted. A bucket that is evicted has usually been refilled by then.
        self._buckets: LatestDict[str, tuple[float, float]] = LatestDict(_MAX_BUCKETS)

    def take(self, name: str, least: int = 1) -> float:
        """Take a token if there are ``least``, and return 0; otherwise return the seconds until there are."""
        tokens = self._tokens(name)
        taken = tokens >= least
        self._buckets[name] = (tokens - taken, self._clock())
        return 0.0 if taken else (least - tokens) * self._seconds

    def rename(self, old: str, new: str) -> None:
        """Carry what ``old`` has used up over to ``new``; the emptier bucket counts."""
        if old in self._buckets:
            self._buckets[new] = (min(self._tokens(old), self._tokens(new)), self._clock())

    def _tokens(self, name: str) -> float:
        if name not in self._buckets or not self._seconds:
            return self._burst
        tokens, counted = self._buckets[name]
        return min(self._burst, tokens + (self._clock() - counted) / self._seconds)


class Backoff:
    """Waits that double from ``first`` to at most ``most`` seconds; each is between half of that and all of it.

    The jitter keeps many clients of one server from coming back in the same second.
    """

    def __init__(self, first: float, most: float, rng: random.Random | None = None) -> None:
        self._first = first
        self._most = most
        self._rng = rng or random.Random()
        self._attempts = 0

    def next(self) -> float:
        # The exponent is bounded because a larger power would overflow a float.
        full = min(self._most, self._first * 2.0 ** min(self._attempts, 32))
        self._attempts += 1
        return full * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Begin with the shortest wait again."""
        self._attempts = 0
