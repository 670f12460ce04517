"""Whether a child that runs also works: it is asked for a sign of life every few seconds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from model_host.protocol import Pong

BEAT_SECONDS = 2.0
MISSED_BEATS = 5  # in a row: the child hangs
DOUBTFUL_BEATS = 2  # in a row: it may hang, so nobody new should be sent here
# A step or the tokenization of a prompt may take long, as a model that does not fit into memory is read from disk at
# every step; longer than a whole load it cannot honestly take.
STUCK_SECONDS = 300.0


class Heartbeat:
    """Counts the beats at which a child gave no sign of life.

    ``ask`` sends a ping. Before the child's first answer it may still be importing its code from a slow disk; then
    ``working``, which tells whether its process did anything since the last beat, is sign enough. Beats are counted
    and not seconds: a gateway that stood still itself must not take that for the child's silence.
    """

    def __init__(self, *, ask: Callable[[], None], working: Callable[[], bool]) -> None:
        self._ask = ask
        self._working = working
        self._missed = 0  # in a row
        self._answer: Pong | None = None  # the last one
        self._alive = False  # since the last beat

    @property
    def silent_seconds(self) -> float:
        """How long the child has given no sign of life; 0 while that is nothing unusual."""
        return self._missed * BEAT_SECONDS if self._missed >= DOUBTFUL_BEATS else 0.0

    @property
    def busy_seconds(self) -> float:
        """Age of the piece of work that the child was in when it last answered."""
        return self._answer.busy_seconds if self._answer is not None else 0.0

    def hear(self, answer: Pong) -> None:
        """A ping was answered."""
        self._answer = answer
        self._alive = answer.busy_seconds < STUCK_SECONDS

    async def watch(self) -> str:
        """Return once the child hangs, with what it failed to do."""
        while self._missed < MISSED_BEATS:
            self._alive = False
            self._ask()
            await asyncio.sleep(BEAT_SECONDS)
            alive = self._alive or (self._answer is None and self._working())
            self._missed = 0 if alive else self._missed + 1
        if self.busy_seconds >= STUCK_SECONDS:
            return f"did not get on with a step or a prompt for {self.busy_seconds:.0f} s"
        return f"did not answer for {self.silent_seconds:g} s"
