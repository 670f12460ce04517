"""Two gateways on one PostgreSQL database: names that one of them holds, and events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gateway.base.errors import HearthError
from gateway.base.supervised import Supervision
from gateway.config.settings import Settings, StoreSettings
from gateway.memory.worker import Worker
from gateway.store.db import Database
from gateway.store.memory.conversations import add_conversation
from gateway.store.memory.jobs import Job, add_job, finish_job, next_job_at
from gateway.store.open import make_database
from tests.gateway.store.test_conversations import make
from tests.postgres import Server
from tests.waiting import PATIENCE, until

_END = "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'"


@pytest.fixture
def url(postgres_server: Server) -> str:
    return postgres_server.database()


@pytest.fixture
async def pair(url: str, tmp_path: Path) -> AsyncIterator[tuple[Database, Database]]:
    """The databases of two gateways."""
    async with AsyncExitStack() as stack:
        opened = []
        for name in ("a", "b"):
            database = make_database(Settings(data_dir=tmp_path / name, store=StoreSettings(url=url)))
            await asyncio.to_thread(database.open)
            stack.push_async_callback(asyncio.to_thread, database.close)
            database.peers.start(Supervision())
            stack.push_async_callback(database.peers.close)
            opened.append(database)
        yield opened[0], opened[1]


async def test_one_gateway_holds_a_name(pair: tuple[Database, Database]) -> None:
    order: list[str] = []

    async def use(database: Database, name: str) -> None:
        async with database.peers.holding("turn c1"):
            order.append(name)
            await asyncio.sleep(0)
            await database.write(lambda c: None)
            order.append(name)

    async with pair[0].peers.holding("turn c1"):
        waiting = asyncio.create_task(use(pair[1], "second"))
        await use_other(pair[1])
        order.append("first")
    await waiting
    await asyncio.gather(*(use(database, str(number)) for number, database in enumerate(pair)))
    assert order[:3] == ["first", "second", "second"]
    assert order[3] == order[4] != order[5] == order[6]


async def use_other(database: Database) -> None:
    """Other names are free."""
    async with database.peers.holding("turn c2"):
        pass


async def test_a_wait_that_is_cancelled_leaves_the_name_free(pair: tuple[Database, Database]) -> None:
    async with pair[0].peers.holding("turn c1"):
        waiting = asyncio.create_task(use_name(pair[1]))
        await use_other(pair[1])
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
    for database in pair:
        await asyncio.wait_for(use_name(database), PATIENCE)


async def use_name(database: Database) -> None:
    async with database.peers.holding("turn c1"):
        pass


async def test_who_lost_the_connection_writes_nothing_under_its_names(
    pair: tuple[Database, Database], postgres_server: Server
) -> None:
    async with pair[0].peers.holding("turn c1"):
        await pair[0].write(lambda c: add_conversation(c, make("c1")))
        await asyncio.to_thread(postgres_server.sql, "postgres", _END)
        async with pair[1].peers.holding("turn c1"):
            with pytest.raises(HearthError, match="the hold on `turn c1`") as caught:
                await pair[0].write(lambda c: add_conversation(c, make("c2")))
        assert (caught.value.status, caught.value.code) == (503, "database_unavailable")
        with pytest.raises(HearthError, match="the hold on `turn c1`"):
            await pair[0].write(lambda c: None)
    await pair[0].write(lambda c: add_conversation(c, make("c3")))
    stored = await pair[1].read(lambda c: c.execute("SELECT id FROM conversations ORDER BY id").fetchall())
    assert stored == [("c1",), ("c3",)]


async def test_places_are_counted_over_both(pair: tuple[Database, Database]) -> None:
    async with AsyncExitStack() as stack:
        taken = [await stack.enter_async_context(pair[n % 2].peers.place("questions", 3)) for n in range(5)]
        assert taken == [True, True, True, False, False]
    for database in pair:
        async with database.peers.place("questions", 1) as free:
            assert free


async def test_events_reach_the_other_gateway_in_order(pair: tuple[Database, Database]) -> None:
    heard: list[tuple[str, bytes]] = []

    async def hear(key: str, body: bytes) -> None:
        heard.append((key, body))

    for database in pair:
        database.peers.hear("news", hear)
    for number in range(5):
        pair[0].peers.tell("news", str(number), {})
        pair[0].peers.tell("other", str(number))
    await until(lambda: len(heard) == 5)
    assert heard == [(str(number), b"{}") for number in range(5)]


async def test_a_job_runs_in_one_gateway_and_makes_room_for_the_other(
    pair: tuple[Database, Database],
) -> None:
    running: list[int] = []
    done = asyncio.Event()
    may_end = asyncio.Event()

    def handler(number: int, database: Database) -> Worker:
        async def handle(job: Job) -> None:
            running.append(number)
            await may_end.wait()
            await database.write(lambda c: finish_job(c, job))
            done.set()

        return Worker(database, {"facts": handle})

    workers = [handler(number, database) for number, database in enumerate(pair)]
    try:
        await pair[0].write(lambda c: add_conversation(c, make()))
        await workers[0].start(Supervision())
        await pair[0].write(lambda c: add_job(c, "facts", "c1", now=1.0))
        workers[0].wake()
        await until(lambda: running == [0])
        async with workers[1].holding("c1"):
            assert not workers[0].running
            workers[0].wake()
            await use_other(pair[0])
            assert running == [0]
        may_end.set()
        await asyncio.wait_for(done.wait(), PATIENCE)
        assert running == [0, 0]
        assert await pair[1].read(next_job_at) is None
    finally:
        for worker in workers:
            await worker.close()
