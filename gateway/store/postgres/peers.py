"""Coordination of several gateways: names are advisory locks of the session that writes, events are rows.

The server releases a gateway's names as soon as that session ends. Whatever was done under them then fails at its next
write, because another gateway may have the name by now.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Protocol, TypeVar
from uuid import uuid4

import apsw
import msgspec
import psycopg
import structlog
from msgspec import Struct

from gateway.base.aio import finish
from gateway.base.errors import HearthError
from gateway.base.peers import Claim, Handler, Peers
from gateway.base.supervised import Supervised, Supervision
from gateway.store.postgres.faults import translated_faults
from gateway.store.postgres.session import Session
from gateway.store.rows import select

_POLL_SECONDS = 0.05
_LOOK_SECONDS = 1.0  # for events without their hint
_KEPT_SECONDS = 600.0
_LONGEST_WAIT_SECONDS = 5.0

_KEY = "hashtextextended(?, 0)"
_TRY = f"SELECT pg_try_advisory_lock({_KEY})"
_RELEASE = f"SELECT pg_advisory_unlock({_KEY})"
_TAKE = f"SELECT CASE WHEN pg_try_advisory_xact_lock({_KEY}) THEN pg_try_advisory_lock({_KEY}) ELSE false END"
_GONE = f"SELECT CASE WHEN pg_try_advisory_lock({_KEY}) THEN pg_advisory_unlock({_KEY}) ELSE false END"

log = structlog.get_logger(__name__)
_claims: ContextVar[tuple[Claim, ...]] = ContextVar("claims", default=())
T = TypeVar("T")


def fenced(fn: Callable[[apsw.Connection], T]) -> Callable[[apsw.Connection], T]:
    """``fn`` as the caller may run it: only in the session that holds the caller's names."""
    claims = _claims.get()

    def run(connection: apsw.Connection) -> T:
        lost = next((each.name for each in claims if not each.over and each.session is not connection), None)
        if lost is not None:
            raise HearthError(
                f"the connection to the database broke, and with it the hold on `{lost}`: try again",
                code="database_unavailable",
                status=503,
                retry_after=_LOOK_SECONDS,
            )
        return fn(connection)

    return run if claims else fn


class _Database(Protocol):
    where: str

    async def read(self, fn: Callable[[apsw.Connection], T]) -> T: ...
    async def write(self, fn: Callable[[apsw.Connection], T]) -> T: ...
    async def apart(self, fn: Callable[[apsw.Connection], T]) -> T: ...
    async def listen(self) -> psycopg.AsyncConnection: ...


class _Event(Struct):
    seq: int
    topic: str
    key: str
    body: bytes


class PostgresPeers(Peers):
    """The gateways of a PostgreSQL database."""

    look_seconds = 5.0

    def __init__(self, database: _Database) -> None:
        super().__init__()
        self._database = database
        self._gateway = uuid4().hex
        self._mine: set[str] = set()  # places, used by the thread that writes
        self._handlers: defaultdict[str, list[Handler]] = defaultdict(list)
        self._untold: list[tuple[str, str, bytes]] = []
        self._told = asyncio.Event()
        self._seen, self._heard_at = 0, time.time()
        self._tasks: list[Supervised] = []

    def begin(self, connection: Session) -> None:
        """Earlier events no longer matter."""
        self._seen = connection.execute("SELECT coalesce(max(seq), 0) FROM events").get

    def take(self, connection: apsw.Connection, name: str, *, unless: str) -> Claim | None:
        return Claim(name, connection) if connection.execute(_TAKE, (unless, name)).get else None

    @asynccontextmanager
    async def keeping(self, claim: Claim) -> AsyncIterator[None]:
        before = _claims.get()
        try:
            if claim.session is None:
                await self._until(lambda c: _taken(c, claim))
            _claims.set((*before, claim))
            yield
        finally:
            _claims.set(before)
            await self._release(claim)

    async def gone(self, name: str, ask: Callable[[], None]) -> None:
        await self._until(lambda c: bool(c.execute(_GONE, (name, name)).get), ask)

    @asynccontextmanager
    async def place(self, name: str, limit: int) -> AsyncIterator[bool]:
        names, claim = [f"{name} {number}" for number in range(limit)], Claim(name)

        def take(connection: apsw.Connection) -> None:
            for claim.name in names:  # a session may take a lock twice
                if claim.name not in self._mine and _taken(connection, claim):
                    self._mine.add(claim.name)
                    return

        try:
            await finish(self._database.apart(take))
            yield claim.session is not None
        finally:
            await self._release(claim)

    def tell(self, topic: str, key: str, body: object = None) -> None:
        self._untold.append((topic, key, msgspec.json.encode(body)))
        self._told.set()

    def hear(self, topic: str, handler: Handler) -> None:
        self._handlers[topic].append(handler)

    def start(self, supervision: Supervision) -> None:
        for name, work in (("events-out", self._send), ("events-in", self._receive)):
            self._tasks.append(supervision.start(name, work, longest_wait=_LONGEST_WAIT_SECONDS))

    async def close(self) -> None:
        for task in self._tasks:
            await task.close()
        if self._untold:
            await self._tell_all()

    async def _until(
        self, done: Callable[[apsw.Connection], bool], ask: Callable[[], None] | None = None
    ) -> None:
        while not await finish(self._database.apart(done)):
            if ask is not None:
                ask()
            ask = None
            await asyncio.sleep(_POLL_SECONDS)

    async def _release(self, claim: Claim) -> None:
        claim.over = True

        def release(connection: apsw.Connection) -> None:
            if claim.session is connection:
                connection.execute(_RELEASE, (claim.name,))

        try:
            await finish(self._database.apart(release))
        except HearthError:
            pass  # the session has ended, and the server has released its names
        finally:
            if claim.session is not None:
                self._mine.discard(claim.name)

    async def _send(self) -> None:
        while True:
            await self._told.wait()
            await self._tell_all()

    async def _tell_all(self) -> None:
        self._told.clear()
        untold, now = self._untold[:], time.time()

        def store(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM events WHERE at < ?", (now - _KEPT_SECONDS,))
            connection.executemany(
                "INSERT INTO events (gateway, topic, key, body, at) VALUES (?, ?, ?, ?, ?)",
                [(self._gateway, *each, now) for each in untold],
            )
            connection.execute("NOTIFY hearth_events")

        await finish(self._database.write(store))
        del self._untold[: len(untold)]
        if self._untold:
            self._told.set()

    async def _receive(self) -> None:
        # A task of its own: cancelling the connecting itself would leave the connection open.
        connecting = asyncio.create_task(self._database.listen())
        try:
            with translated_faults(self._database.where):
                listening = await asyncio.shield(connecting)
                await listening.execute("LISTEN hearth_events")
                while True:
                    await self._hear_all()
                    async for _ in listening.notifies(timeout=_LOOK_SECONDS, stop_after=1):
                        pass
        finally:
            with contextlib.suppress(psycopg.Error):
                await (await connecting).close()

    async def _hear_all(self) -> None:
        seen, now = self._seen, time.time()
        if now - self._heard_at > _KEPT_SECONDS:
            log.warning("events of other gateways may be lost", seconds=round(now - self._heard_at))
        self._heard_at = now
        source = "events WHERE seq > ? AND gateway <> ? ORDER BY seq"
        for event in await self._database.read(lambda c: select(c, _Event, source, (seen, self._gateway))):
            self._seen = event.seq
            for handler in self._handlers[event.topic]:
                try:
                    await handler(event.key, event.body)
                except HearthError as error:
                    log.warning(
                        "an event of another gateway had no effect", event=event.topic, problem=error.message
                    )


def _taken(connection: apsw.Connection, claim: Claim) -> bool:
    if connection.execute(_TRY, (claim.name,)).get:
        claim.session = connection
    return claim.session is not None
