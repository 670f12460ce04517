"""Running work side by side, so that no part outlives the whole."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def side_by_side(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Results in order. The first error, or a cancellation, stops the rest and is raised once they have ended."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await stop(tasks)


async def stop(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended. Their errors are no longer anybody's business."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` to its end even when the caller is cancelled meanwhile; the cancellation is raised then."""
    task = asyncio.create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()
        raise cancelled
    return task.result()
