"""Pings to a child, to detect that it hangs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from model_host.protocol import Pong

BEAT_SECONDS = 2.0
MISSED_BEATS = 5  # in a row: the child hangs
DOUBTFUL_BEATS = 2  # in a row: it may hang, so it should get no new requests
# A step may take long, because a model that does not fit into memory is read from disk in each step; but not longer
# than a load.
STUCK_SECONDS = 300.0


class Heartbeat:
    """Counts the beats without a sign of life from the child.

    ``ask`` sends a ping. Before its first reply, the child may be importing its code from a slow disk; until then it
    counts as alive if ``working`` says that its process was active since the last beat. Beats are counted instead of
    seconds, so that a gateway that was suspended does not blame the child.
    """

    def __init__(self, *, ask: Callable[[], None], working: Callable[[], bool]) -> None:
        self._ask = ask
        self._working = working
        self._missed = 0  # in a row
        self._answer: Pong | None = None  # the last one
        self._alive = False  # since the last beat

    @property
    def silent_seconds(self) -> float:
        """Time without a sign of life; 0 below :data:`DOUBTFUL_BEATS`."""
        return self._missed * BEAT_SECONDS if self._missed >= DOUBTFUL_BEATS else 0.0

    @property
    def busy_seconds(self) -> float:
        """Age of the child's current piece of work at its last reply."""
        return self._answer.busy_seconds if self._answer is not None else 0.0

    def hear(self, answer: Pong) -> None:
        self._answer = answer
        self._alive = answer.busy_seconds < STUCK_SECONDS

    async def watch(self) -> str:
        """Wait until the child hangs; return what it failed to do."""
        while self._missed < MISSED_BEATS:
            self._alive = False
            self._ask()
            await asyncio.sleep(BEAT_SECONDS)
            alive = self._alive or (self._answer is None and self._working())
            self._missed = 0 if alive else self._missed + 1
        if self.busy_seconds >= STUCK_SECONDS:
            return f"made no progress with a step or a prompt for {self.busy_seconds:.0f} s"
        return f"did not answer for {self.silent_seconds:g} s"
