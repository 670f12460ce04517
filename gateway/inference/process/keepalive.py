"""Idle time of a host, counted from the end of its last use; and its start before a request needs it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Self

from gateway.base.aio import stop
from gateway.base.errors import HearthError
from gateway.inference.interface import Inference, KeepAlive


class Use:
    """One use of the host, from the request for it until its last event; a context manager.

    :meth:`hold` extends the use beyond the ``with`` block, until :meth:`release`.
    """

    def __init__(self, leave: Callable[[], None], end: Callable[[], None]) -> None:
        self._leave = leave
        self._end = end
        self._holders = 1
        self._left = False

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if self._holders == 0:
            if not self._left:
                self._leave()
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()
        self._left = True
        self.release()


class IdleClock:
    """The open uses, and the time at which the host may be stopped.

    The ``keep_alive`` of the use whose block ends last decides, as in Ollama: seconds, 0 = at once, negative = never,
    None = ``default``. A request that was abandoned before and ends later decides nothing. ``on_change`` runs after
    every change of :attr:`deadline`.
    """

    def __init__(self, default: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.open = 0
        self.on_change: Callable[[], None] = lambda: None
        self._default = default
        self._clock = clock
        self._keep: float | None = None  # seconds from `_idle_since`; None: forever
        self._idle_since = 0.0
        self._expire = False

    def begin(self, keep_alive: KeepAlive = None) -> Use:
        self.open += 1
        self.on_change()
        return Use(partial(self._leave, keep_alive), self._end)

    def _leave(self, keep_alive: KeepAlive) -> None:
        keep = self._default if keep_alive is None else keep_alive
        self._keep = None if keep < 0 else keep

    def _end(self) -> None:
        self.open -= 1
        self._idle_since = self._clock()
        self.on_change()

    def expire(self) -> None:
        """Let the host be stopped as soon as it is unused, whatever ``keep_alive`` is."""
        self._expire = True
        self.on_change()

    def restart(self) -> None:
        """A new host starts: undo :meth:`expire`, which was for the previous one."""
        self._expire = False
        self._keep = None

    def ready(self) -> None:
        """The host is ready: its loading time does not count as idle."""
        self._idle_since = self._clock()

    @property
    def expired(self) -> bool:
        """Whether :meth:`expire` was called and the host is unused."""
        return self._expire and not self.open

    @property
    def deadline(self) -> float | None:
        """Monotonic time from which the host may be stopped; None while it is in use or kept forever."""
        if self.expired:
            return self._clock()
        return None if self.open or self._keep is None else self._idle_since + self._keep

    @property
    def seconds_left(self) -> float | None:
        """Seconds until :attr:`deadline`, at least 0."""
        deadline = self.deadline
        return None if deadline is None else max(0.0, deadline - self._clock())


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
