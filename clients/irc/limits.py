"""How much somebody may ask: token buckets by name."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from msgspec import Struct

# Buckets that are kept; the ones used longest ago go first, and by then they are full again.
_MOST_BUCKETS = 4096


class _Bucket(Struct):
    tokens: float
    at: float


class Buckets:
    """Token buckets by name: ``burst`` at once, then one every ``seconds``. ``clock`` is in seconds."""

    def __init__(self, burst: int, seconds: float, clock: Callable[[], float]) -> None:
        self._burst = burst
        self._seconds = seconds
        self._clock = clock
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, name: str) -> float:
        """Take a token; 0 when there was one, else the seconds until there is (then none is taken)."""
        bucket = self._filled(name)
        if bucket.tokens < 1:
            return (1 - bucket.tokens) * self._seconds
        bucket.tokens -= 1
        return 0.0

    def rename(self, old: str, new: str) -> None:
        """A user has another name now and brings along what is used up; the emptier bucket counts."""
        if old in self._buckets:
            tokens = min(self._filled(old).tokens, self._filled(new).tokens)
            self._filled(new).tokens = tokens

    def _filled(self, name: str) -> _Bucket:
        now = self._clock()
        bucket = self._buckets.get(name)
        if bucket is None:
            bucket = self._buckets[name] = _Bucket(float(self._burst), now)
            if len(self._buckets) > _MOST_BUCKETS:
                self._buckets.popitem(last=False)
        bucket.tokens = min(float(self._burst), bucket.tokens + (now - bucket.at) / self._seconds)
        bucket.at = now
        self._buckets.move_to_end(name)
        return bucket
