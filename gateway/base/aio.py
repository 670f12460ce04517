"""Locks by key, and tasks that never outlive their caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")


class KeyedLocks:
    """One lock per key. A lock exists while a task holds it or waits for it; waiting tasks take turns.

    ``beyond`` locks a key against other processes, once this one's tasks are locked out.
    """

    def __init__(
        self, beyond: Callable[[str], AbstractAsyncContextManager[None]] = lambda key: nullcontext()
    ) -> None:
        self._beyond = beyond
        self._locks: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    @property
    def keys(self) -> Collection[str]:
        return self._users.keys()

    def users(self, key: str) -> int:
        """The number of tasks that hold the lock or wait for it."""
        return self._users.get(key, 0)

    @asynccontextmanager
    async def hold(self, key: str) -> AsyncIterator[None]:
        # ``Lock.locked()`` is False between a release and the next waiter's turn, so users are counted.
        lock = self._locks.setdefault(key, asyncio.Lock())
        self._users[key] = self.users(key) + 1
        try:
            async with lock, self._beyond(key):
                yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._locks[key]


async def side_by_side(work: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run all concurrently; return the results in order.

    The first error, or a cancellation, stops the others and is raised once they have ended.
    """
    tasks = [asyncio.create_task(each) for each in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        await stop(tasks)


async def stop(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended. Their errors are dropped."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` to its end even if the caller is cancelled, and raise the cancellation afterwards."""
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
