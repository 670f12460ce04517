"""Starting the model before anybody needs it, because somebody is about to."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from gateway.base.aio import stop
from gateway.base.errors import HearthError
from gateway.inference.interface import Inference


class Waker:
    """One start at a time, which nobody waits for. An object belongs to the event loop that first uses it."""

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self._start: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Have the model ready soon. A host that is ready counts it as a use: its idle time begins anew.

        Never fails: the request that follows is told what is wrong.
        """
        if self._start is None or self._start.done():
            self._start = asyncio.create_task(self._warm(), name="wake")

    async def close(self) -> None:
        """No longer wait for a start that is under way."""
        if self._start is not None:
            await stop([self._start])

    async def _warm(self) -> None:
        with suppress(HearthError):
            await self._inference.warm()
