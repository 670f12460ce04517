"""A model's speed on this machine: measured at its first load, corrected by its requests.

"Reading" is prefill, "writing" is decode. A token attends to all tokens before it, so speed falls with depth: a token
at depth ``d`` counts as ``1 + d / DEPTH`` tokens.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

from msgspec import Struct

from model_host.protocol import Finished

# The depth at which a token takes twice as long as the first one. SmolLM2-135M in Q4_1 on one core prefills 227
# tokens/s at depth 0, 170 at 1,280 and 117 at 3,840 (CPU time, 2026-11-22). Larger models slow down later.
DEPTH = 4000.0
# Tokens over which the averages run: about five questions.
READING_WINDOW, WRITING_WINDOW = 2000.0, 300.0
# Shorter prompts and replies measure the overhead of a request instead.
_LEAST_READ, _LEAST_WRITTEN = 48, 8
# Weight of the first load's measurement in tokens: about one question.
_FIRST_READ, _FIRST_WRITTEN = 400.0, 50.0


def effort(tokens: int, depth: int = 0) -> float:
    """Convert tokens after ``depth`` others to the number of tokens at depth 0 that takes as long."""
    return tokens * (1.0 + (depth + tokens / 2) / DEPTH)


class Speed(Struct, frozen=True):
    """Tokens per second at depth 0."""

    reading: float
    writing: float

    def shared(self, requests: int) -> Speed:
        """Return the speed of each of ``requests`` concurrent requests."""
        return Speed(self.reading / requests, self.writing / requests)

    def seconds(self, read: int, written: int, cached: int = 0) -> float:
        """Estimate the duration of a prefill of ``read`` tokens after ``cached`` ones, and a decode of ``written``."""
        return effort(read, cached) / self.reading + effort(written, cached + read) / self.writing

    def readable(self, seconds: float, written: int, limit: int) -> int:
        """Return the longest prompt, at most ``limit`` tokens, that leaves time to decode; -1 if there is none."""
        return bisect_right(range(limit + 1), seconds, key=lambda read: self.seconds(read, written)) - 1


class Rate(Struct, frozen=True):
    """Tokens and their duration in seconds; both decay with newer measurements."""

    tokens: float = 0.0
    seconds: float = 0.0

    @property
    def value(self) -> float | None:
        """Tokens per second; None without a measurement."""
        return self.tokens / self.seconds if self.seconds > 0 else None

    def add(self, tokens: float, seconds: float, window: float) -> Rate:
        """Add a measurement; one of ``window`` tokens or more replaces all before it."""
        if tokens <= 0 or seconds <= 0:
            return self
        kept = max(0.0, 1.0 - tokens / window)
        return Rate(kept * self.tokens + tokens, kept * self.seconds + seconds)


class Learned(Struct, frozen=True):
    """A model's measured speed. ``threads`` is the setting during the measurement (0: the thread plan)."""

    threads: int = 0
    reading: Rate = Rate()
    writing: Rate = Rate()

    @classmethod
    def first(cls, speeds: Mapping[int, Mapping[int, float]]) -> Learned:
        """Start from the first load's tokens per second by batch size and number of threads."""
        best = {size: max(by_threads.values()) for size, by_threads in speeds.items() if by_threads}
        largest = max(best, default=0)
        return cls(
            0,
            Rate(_FIRST_READ, _FIRST_READ / best[largest]) if largest > 1 else Rate(),
            Rate(_FIRST_WRITTEN, _FIRST_WRITTEN / best[1]) if 1 in best else Rate(),
        )

    def add(self, end: Finished) -> Learned:
        """Add a finished request that ran alone."""
        reading, writing = self.reading, self.writing
        read = end.prompt_tokens - end.cached_tokens
        if read >= _LEAST_READ or reading.value is None:
            reading = reading.add(effort(read, end.cached_tokens), end.prefill_seconds, READING_WINDOW)
        written = end.completion_tokens - 1  # the first token belongs to the prefill
        if written >= _LEAST_WRITTEN or writing.value is None:
            writing = writing.add(effort(written, end.prompt_tokens), end.decode_seconds, WRITING_WINDOW)
        return Learned(self.threads, reading, writing)

    @property
    def speed(self) -> Speed | None:
        """None until both speeds are known."""
        reading, writing = self.reading.value, self.writing.value
        return None if reading is None or writing is None else Speed(reading, writing)

    def differs(self, other: Learned) -> bool:
        """Whether a speed changed by more than a tenth, or is new."""
        pairs = (self.reading.value, other.reading.value), (self.writing.value, other.writing.value)
        return any(
            new != old and (new is None or old is None or abs(new - old) > old / 10) for new, old in pairs
        )
