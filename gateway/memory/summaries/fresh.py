"""Always fresh: one summary of each whole conversation, brought up to date while nobody waits for the model.

It is in no prompt. A continuation (`POST …/rollover`) begins with it, and `GET …/summary` shows it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from gateway.base.aio import stop
from gateway.memory.context import MemoryParts
from gateway.memory.summaries.compaction import HistoryCompactor
from gateway.memory.worker import JobPostponedError
from gateway.store.memory.conversations import Conversation

T = TypeVar("T")

# Poll interval for other requests; one that comes stops the work at once.
_POLL_SECONDS = 0.05
# After another request, which is often followed by more.
_QUIET_SECONDS = 2.0
# Idle time of at most this long is saved up.
_SAVED_SECONDS = 3600.0


class Allowance:
    """Seconds of work that may be done: a share of the time that has passed."""

    def __init__(self, share: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._share = share
        self._clock = clock
        self._left = 0.0
        self._since = clock()

    def wait(self, seconds: float) -> float:
        """How long until work of ``seconds`` may begin; at most 0 if it may now."""
        now = self._clock()
        saved = self._left + self._share * (now - self._since)
        self._left, self._since = min(saved, self._share * _SAVED_SECONDS), now
        return (min(seconds, self._share * _SAVED_SECONDS) - self._left) / self._share

    def spend(self, seconds: float) -> None:
        self._left -= seconds


class FreshSummaries:
    def __init__(self, parts: MemoryParts, compactor: HistoryCompactor) -> None:
        self._parts = parts
        self._compactor = compactor
        self._allowance = Allowance(parts.settings.fresh_share)

    async def run(self, conversation: Conversation) -> None:
        """Bring the summary up to date, unless the model is unloaded: the next exchange asks again.

        Raises JobPostponedError when somebody waits for the model, or until ``memory.fresh_share`` allows the work.
        """
        if self._parts.inference.health().state != "ready":
            return
        self._give_way()
        wait = self._allowance.wait(await self._compactor.freshening_seconds(conversation))
        if wait > 0:
            raise JobPostponedError(wait)
        begun = time.monotonic()
        try:
            await self._while_idle(self._compactor.freshen(conversation))
        finally:
            self._allowance.spend(time.monotonic() - begun)

    async def _while_idle(self, work: Coroutine[Any, Any, T]) -> T:
        task = asyncio.create_task(work)
        try:
            while not (await asyncio.wait({task}, timeout=_POLL_SECONDS))[0]:
                self._give_way()
            return task.result()
        finally:
            await stop([task])

    def _give_way(self) -> None:
        if self._parts.inference.health().foreground:
            raise JobPostponedError(_QUIET_SECONDS)
