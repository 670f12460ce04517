"""How long an unused host is kept: counted from the end of the last use, never while one is in flight."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Self

from gateway.inference.interface import KeepAlive


class Use:
    """One use of the host, from the moment it is wanted until its last event; a context manager.

    Whoever needs the host beyond the ``with`` block takes a ``hold`` of its own and gives it back by ``release``.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end
        self._holders = 1

    def hold(self) -> None:
        self._holders += 1

    def release(self) -> None:
        self._holders -= 1
        if self._holders == 0:
            self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class IdleClock:
    """Open uses, and the moment after which the host may go.

    The use that ends last decides by its ``keep_alive``, as in Ollama: seconds, 0 = right away, negative =
    forever, None = ``default``. ``on_change`` runs after every change of :attr:`deadline`.
    """

    def __init__(self, default: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.open = 0
        self.on_change: Callable[[], None] = _nothing
        self._default = default
        self._clock = clock
        self._keep: float | None = None  # seconds from `_idle_since`; None: for ever
        self._idle_since = 0.0
        self._expire = False

    def begin(self, keep_alive: KeepAlive = None) -> Use:
        """Count a use until nobody holds it any more."""
        self.open += 1
        self.on_change()
        return Use(partial(self._end, keep_alive))

    def _end(self, keep_alive: KeepAlive) -> None:
        self.open -= 1
        keep = self._default if keep_alive is None else keep_alive
        self._keep = None if keep < 0 else keep
        self._idle_since = self._clock()
        self.on_change()

    def expire(self) -> None:
        """Let the host go as soon as nothing uses it, whatever ``keep_alive`` said."""
        self._expire = True
        self.on_change()

    def restart(self) -> None:
        """A new host begins its life: forget a wish to let the former one go."""
        self._expire = False
        self._keep = None

    def ready(self) -> None:
        """The host is there only now: time that nobody waited for its load does not count as idle."""
        self._idle_since = self._clock()

    @property
    def expired(self) -> bool:
        """Nothing uses the host, and :meth:`expire` was called."""
        return self._expire and not self.open

    @property
    def deadline(self) -> float | None:
        """Monotonic time from which the host may go; None while it is in use or kept forever."""
        if self.expired:
            return self._clock()
        return None if self.open or self._keep is None else self._idle_since + self._keep

    @property
    def seconds_left(self) -> float | None:
        """Seconds until :attr:`deadline`, at least 0."""
        deadline = self.deadline
        return None if deadline is None else max(0.0, deadline - self._clock())


def _nothing() -> None:
    pass
