"""Start the model before a request needs it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from gateway.base.aio import stop
from gateway.base.errors import HearthError
from gateway.inference.interface import Inference


class Waker:
    """Starts the model in the background, one start at a time."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self._start: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Start the model; if it is ready, restart its idle time.

        Never raises: the request that follows gets the error.
        """
        if self._start is None or self._start.done():
            self._start = asyncio.create_task(self._warm(), name="wake")

    async def close(self) -> None:
        if self._start is not None:
            await stop([self._start])

    async def _warm(self) -> None:
        with suppress(HearthError):
            await self._inference.warm()
