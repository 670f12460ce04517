"""Several streams read as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import TypeVar

from gateway.base.aio import stop

T = TypeVar("T")

# Items that wait for a slow reader before the streams wait too.
_BUFFERED_ITEMS = 64


class _End:
    """A stream has ended; ``error`` says that it broke off."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error


async def merged(streams: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """The items of all streams as they come, each with its stream's number.

    The first error ends them all and is raised; closing this generator ends them too.
    """
    queue: asyncio.Queue[tuple[int, T | _End]] = asyncio.Queue(_BUFFERED_ITEMS)
    tasks = [asyncio.create_task(_pump(number, stream, queue)) for number, stream in enumerate(streams)]
    try:
        open_streams = len(tasks)
        while open_streams:
            number, item = await queue.get()
            if not isinstance(item, _End):
                yield number, item
            elif item.error is not None:
                raise item.error
            else:
                open_streams -= 1
    finally:
        await stop(tasks)


async def _pump(
    number: int, stream: AsyncGenerator[T, None], queue: asyncio.Queue[tuple[int, T | _End]]
) -> None:
    try:
        async with aclosing(stream):
            async for item in stream:
                await queue.put((number, item))
    except Exception as error:
        await queue.put((number, _End(error)))
    else:
        await queue.put((number, _End()))
