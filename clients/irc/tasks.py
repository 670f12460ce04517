"""Tasks with an owner: none is lost, none fails unseen, and none outlives the program."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

log = structlog.get_logger(__name__)


class Tasks:
    """Runs coroutines in the background until they are done or :meth:`close` stops them."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run it. An error that it should have handled is logged."""
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._ended)

    async def drain(self, seconds: float) -> None:
        """Let what runs come to its end, but not longer than this."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)

    async def close(self) -> None:
        """Stop what runs and wait until it has ended."""
        for task in (running := list(self._running)):
            task.cancel()
        if running:
            await asyncio.wait(running)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task failed unexpectedly", exc_info=error)
