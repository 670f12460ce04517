"""How long to wait before the next attempt: exponential, with jitter."""

from __future__ import annotations

import random


class Backoff:
    """Doubles from ``first`` to at most ``most`` seconds; each wait is between half of that and all of it.

    The jitter keeps many clients of one server from coming back in the same second.
    """

    def __init__(self, first: float, most: float, rng: random.Random | None = None) -> None:
        self._first = first
        self._most = most
        self._rng = rng or random.Random()
        self._attempts = 0

    def next(self) -> float:
        """Seconds to wait now; the following wait will be longer."""
        # Past 2**32 the power would be over any `most`, and in the end too large for a float.
        full = min(self._most, self._first * 2.0 ** min(self._attempts, 32))
        self._attempts += 1
        return full * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """It worked: begin with the shortest wait again."""
        self._attempts = 0
