"""Statistics of a host: counters since its start, and speeds over the last minute."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import psutil

from model_host import protocol

WINDOW_SECONDS = 60.0


class Meter:
    """Filled by a loop, step by step."""

    def __init__(self) -> None:
        self.requests = self.prompt_tokens = self.cached_tokens = self.completion_tokens = self.steps = 0
        self.drafted_tokens = self.accepted_tokens = 0
        self.thread_plan: Callable[[], dict[int, int]] = dict  # called for every report
        self._started = time.monotonic()
        # Of each recent step: its end, prompt tokens, seconds on them, decoded tokens, seconds on them.
        self._recent: deque[list[float]] = deque()

    def count(self, prefill: int, decode: int, seconds: float) -> None:
        """Record a step. Its seconds are split between prefill and decode in proportion to their tokens."""
        self.steps += 1
        self.prompt_tokens += prefill
        share = prefill / (prefill + decode)
        now = time.monotonic()
        self._recent.append([now, prefill, seconds * share, decode, seconds * (1 - share)])
        while self._recent[0][0] < now - WINDOW_SECONDS:
            self._recent.popleft()

    def count_drafts(self, drafted: int, accepted: int) -> None:
        """Record draft tokens of the last step. The accepted ones were decoded in addition to one per sequence."""
        self.drafted_tokens += drafted
        self.accepted_tokens += accepted
        self._recent[-1][3] += accepted

    def speeds(self) -> tuple[float, float]:
        """Tokens/s of prefill and of decode over the last minute's steps; 0 where there were none."""
        cutoff = time.monotonic() - WINDOW_SECONDS
        recent = [row for row in self._recent if row[0] >= cutoff]
        _, prefill, prefill_seconds, decode, decode_seconds = map(sum, zip([0.0] * 5, *recent, strict=True))
        return _rate(prefill, prefill_seconds), _rate(decode, decode_seconds)

    def stats(self, request_id: str, *, waiting: int, running: int, **others: Any) -> protocol.Stats:
        """The answer to ``stats``; ``others`` are fields of it that only some hosts have."""
        prefill_speed, decode_speed = self.speeds()
        return protocol.Stats(
            id=request_id,
            waiting=waiting,
            running=running,
            requests=self.requests,
            prompt_tokens=self.prompt_tokens,
            cached_tokens=self.cached_tokens,
            completion_tokens=self.completion_tokens,
            drafted_tokens=self.drafted_tokens,
            accepted_tokens=self.accepted_tokens,
            steps=self.steps,
            prefill_tokens_per_second=prefill_speed,
            decode_tokens_per_second=decode_speed,
            uptime_seconds=round(time.monotonic() - self._started, 3),
            rss_bytes=psutil.Process().memory_info().rss,
            thread_plan=self.thread_plan(),
            **others,
        )


def _rate(tokens: float, seconds: float) -> float:
    return round(tokens / seconds, 2) if seconds > 0 else 0.0
