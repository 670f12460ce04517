"""The other gateways of a database: names that one gateway holds at a time, and events."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import apsw
from msgspec import Struct

from gateway.base.aio import KeyedLocks
from gateway.base.supervised import Supervision

Handler = Callable[[str, bytes], Awaitable[None]]


class Claim(Struct, eq=False):
    """A name that is held while ``session``, in which it was taken, lasts, and until it is ``over``."""

    name: str
    session: object = None
    over: bool = False


class Peers:
    """Peers on SQLite, which has one gateway: its own locks suffice, and no other gateway gets its events."""

    # How often to look for jobs that other gateways left.
    look_seconds: float | None = None

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def take(self, connection: apsw.Connection, name: str, *, unless: str) -> Claim | None:
        """In a write: hold ``name`` until :meth:`keeping` ends; None if another gateway does, or holds ``unless``."""
        return Claim(name)

    @asynccontextmanager
    async def keeping(self, claim: Claim) -> AsyncIterator[None]:
        """Hold a name during the block. Writes within fail once the name may belong to another gateway."""
        yield

    def holding(self, name: str) -> AbstractAsyncContextManager[None]:
        """Wait for a name, and hold it during the block as :meth:`keeping` does.

        Tasks of one gateway need a lock of their own.
        """
        return self.keeping(Claim(name))

    def locks(self, kind: str) -> KeyedLocks:
        """Locks whose names begin with ``kind``."""
        return KeyedLocks(lambda key: self.holding(f"{kind} {key}"))

    async def gone(self, name: str, ask: Callable[[], None]) -> None:
        """Wait until no other gateway holds the name; if one does, call ``ask`` once to have it released."""

    @asynccontextmanager
    async def place(self, name: str, limit: int) -> AsyncIterator[bool]:
        """Hold one of ``limit`` places; False if all are taken."""
        taken = self._places.get(name, 0)
        self._places[name] = taken + (free := taken < limit)
        try:
            yield free
        finally:
            self._places[name] -= free

    def tell(self, topic: str, key: str, body: object = None) -> None:
        """Tell the other gateways, soon and in order; they get ``body`` as JSON."""

    def hear(self, topic: str, handler: Handler) -> None:
        """Await ``handler(key, body)`` for each event from another gateway."""

    def start(self, supervision: Supervision) -> None:
        """Exchange events from now on."""

    async def close(self) -> None:
        """Tell what is left, and stop."""
