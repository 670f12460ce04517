"""What the bot has done since it started."""

from __future__ import annotations

import time
from collections import deque
from statistics import median

_KEPT = 200


class Stats:
    """Counters, and the seconds of the last answers."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._seconds: deque[float] = deque(maxlen=_KEPT)
        self.answered = 0
        self.failed = 0
        self.refused = 0
        self.model = ""

    def answer(self, seconds: float, model: str) -> None:
        """A question was answered."""
        self.answered += 1
        self._seconds.append(seconds)
        self.model = model or self.model

    def told(self, running: int, waiting: int) -> str:
        """Everything on one line."""
        parts = [
            f"up {_span(time.monotonic() - self._started)}",
            f"{self.answered} answered",
            f"{self.failed} failed",
            f"{self.refused} refused",
            f"{running} in work",
            f"{waiting} waiting",
        ]
        if self._seconds:
            parts.append(f"median {median(self._seconds):.1f} s")
        if self.model:
            parts.append(f"model {self.model}")
        return ", ".join(parts)


def _span(seconds: float) -> str:
    minutes, hours, days = int(seconds) // 60, int(seconds) // 3600, int(seconds) // 86_400
    if days:
        return f"{days} d {hours % 24} h"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"
