"""What a host has done: counters since start, and speeds over the last minute of work."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import psutil

from model_host import protocol

WINDOW_SECONDS = 60.0


class Meter:
    """Filled by a loop, step by step."""

    def __init__(self) -> None:
        self.requests = self.prompt_tokens = self.cached_tokens = self.completion_tokens = self.steps = 0
        self.drafted_tokens = self.accepted_tokens = 0
        self.thread_plan: Callable[[], dict[int, int]] = dict  # asked for with every report
        self._started = time.monotonic()
        # (when, prompt tokens, seconds on them, decoded tokens, seconds on them)
        self._recent: deque[list[float]] = deque()

    def count(self, prefill: int, decode: int, seconds: float) -> None:
        """A finished step: its seconds are split between reading and decoding by tokens."""
        self.steps += 1
        self.prompt_tokens += prefill
        share = prefill / (prefill + decode)
        now = time.monotonic()
        self._recent.append([now, prefill, seconds * share, decode, seconds * (1 - share)])
        while self._recent and self._recent[0][0] < now - WINDOW_SECONDS:
            self._recent.popleft()

    def guessed(self, proposed: int, held: int) -> None:
        """Of the last step's guesses so many were right: tokens decoded besides one for each sequence."""
        self.drafted_tokens += proposed
        self.accepted_tokens += held
        self._recent[-1][3] += held

    def speeds(self) -> tuple[float, float]:
        """Tokens a second of the last minute's work, reading and decoding; 0 where there was none."""
        cutoff = time.monotonic() - WINDOW_SECONDS
        recent = [row for row in self._recent if row[0] >= cutoff]
        return (
            _rate(sum(row[1] for row in recent), sum(row[2] for row in recent)),
            _rate(sum(row[3] for row in recent), sum(row[4] for row in recent)),
        )

    def stats(
        self,
        request_id: str,
        *,
        waiting: int,
        running: int,
        kv_used: int = 0,
        kv_size: int = 0,
        snapshots_saved: int = 0,
        snapshots_restored: int = 0,
        wait_seconds: float | None = None,
    ) -> protocol.Stats:
        """The answer to ``stats``."""
        prefill_speed, decode_speed = self.speeds()
        return protocol.Stats(
            id=request_id,
            waiting=waiting,
            running=running,
            kv_used=kv_used,
            kv_size=kv_size,
            snapshots_saved=snapshots_saved,
            snapshots_restored=snapshots_restored,
            requests=self.requests,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            drafted_tokens=self.drafted_tokens,
            accepted_tokens=self.accepted_tokens,
            steps=self.steps,
            wait_seconds=wait_seconds,
            prefill_tokens_per_second=prefill_speed,
            decode_tokens_per_second=decode_speed,
            uptime_seconds=round(time.monotonic() - self._started, 3),
            rss_bytes=psutil.Process().memory_info().rss,
            thread_plan=self.thread_plan(),
        )


def _rate(tokens: float, seconds: float) -> float:
    return round(tokens / seconds, 2) if seconds > 0 else 0.0
