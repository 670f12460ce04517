"""The circuit breaker: stops restarts of a child that keeps crashing."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from gateway.base.errors import ModelUnavailableError

WINDOW = 60.0


class Breaker:
    """Counts crashes, but not kills by other programs, which say nothing about the next child.

    It opens after ``limit`` crashes within a window of :data:`WINDOW` seconds and rejects starts for ``cooldown``
    seconds. Then it is half-open: starts are allowed, and the first crash within a window opens it again, for twice as
    long (at most ``max_cooldown``) if the child was never ready, otherwise for the first ``cooldown``, because such a
    child serves at least for a while. It closes after a window without a crash, and when a child that was ready ends on
    request. All times are seconds of the monotonic ``clock``.
    """

    def __init__(
        self,
        *,
        limit: int = 3,
        cooldown: float = 1.0,
        max_cooldown: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.crashes = 0  # since the gateway started
        self._limit = limit
        self._first_cooldown = cooldown
        self._cooldown = cooldown
        self._max_cooldown = max_cooldown
        self._clock = clock
        self._recent: deque[float] = deque(maxlen=limit)
        self._open_until: float | None = None
        self._reason = ""

    def crashed(self, reason: str, *, was_ready: bool = False) -> None:
        now = self._clock()
        self.crashes += 1
        self._reason = reason
        self._recent.append(now)
        full = len(self._recent) == self._limit and now - self._recent[0] <= WINDOW
        if self._open_until is None:
            if full:
                self._open_until = now + self._cooldown
        elif now - self._open_until <= WINDOW:  # half-open, and the trial failed
            doubled = min(2 * self._cooldown, self._max_cooldown)
            self._cooldown = self._first_cooldown if was_ready else doubled
            self._open_until = now + self._cooldown
        else:  # no crash for a whole window: this one is the first again
            self._close()
            self._recent.append(now)

    def ended_well(self) -> None:
        """A child that was ready has ended on request: close a half-open breaker."""
        if self._open_until is not None and self.retry_after() is None:
            self._close()

    def retry_after(self) -> float | None:
        """Seconds until a start is allowed; None when it is allowed now."""
        if self._open_until is None:
            return None
        left = self._open_until - self._clock()
        return left if left > 0 else None

    def refusal(self) -> ModelUnavailableError | None:
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
