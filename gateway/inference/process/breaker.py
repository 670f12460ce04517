"""When to stop starting a child that keeps crashing."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from gateway.base.errors import ModelUnavailableError


class Breaker:
    """Only for a child that fails by itself: one that somebody else killed says nothing of the next one.

    Opens after ``limit`` crashes within ``window`` seconds and then refuses starts for ``cooldown`` seconds.
    After the cooldown it is half-open: starts are tried again, and the first crash within ``window`` seconds
    opens it again: for twice as long (at most ``max_cooldown``) when the child crashed before it was ready, else
    for the first ``cooldown``, which is short because such a child at least serves for a while. No crash in that
    time, or a host that served and ended in good order, closes it. All times are seconds of the monotonic ``clock``.
    """

    def __init__(
        self,
        *,
        limit: int = 3,
        window: float = 60.0,
        cooldown: float = 1.0,
        max_cooldown: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.crashes = 0  # since the gateway started
        self._limit = limit
        self._window = window
        self._first_cooldown = cooldown
        self._cooldown = cooldown
        self._max_cooldown = max_cooldown
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=limit)
        self._open_until: float | None = None
        self._reason = ""

    def crashed(self, reason: str, *, was_ready: bool = False) -> None:
        """Count a crash."""
        now = self._clock()
        self.crashes += 1
        self._reason = reason
        self._recent.append(now)
        full = len(self._recent) == self._limit and now - self._recent[0] <= self._window
        if self._open_until is None:
            if full:
                self._open_until = now + self._cooldown
        elif now - self._open_until <= self._window:  # half-open, and the trial failed
            doubled = min(2 * self._cooldown, self._max_cooldown)
            self._cooldown = self._first_cooldown if was_ready else doubled
            self._open_until = now + self._cooldown
        else:  # nothing crashed for a window: this crash is a first one
            self._close()
            self._recent.append(now)

    def ended_well(self) -> None:
        """A child that had served ended because it was asked to: whatever was wrong is over."""
        if self._open_until is not None and self.retry_after() is None:
            self._close()

    def retry_after(self) -> float | None:
        """Seconds until a start is allowed; None when it is allowed now."""
        if self._open_until is None:
            return None
        left = self._open_until - self._clock()
        return left if left > 0 else None

    def refusal(self) -> ModelUnavailableError | None:
        """The error for a caller while starts are refused."""
        left = self.retry_after()
        if left is None:
            return None
        message = (
            f"the model host crashed {self.crashes} times, the last time because {self._reason}; "
            f"the next start is tried in {left:.0f} s"
        )
        return ModelUnavailableError(message, code="model_broken", retry_after=left)

    def _close(self) -> None:
        self._open_until = None
        self._cooldown = self._first_cooldown
        self._recent.clear()
