"""The worker outlives a database that fails for a while, and what it runs is told."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest
from structlog.testing import capture_logs

from gateway.base import supervised
from gateway.base.errors import HearthError
from gateway.base.peers import Peers
from gateway.base.supervised import Supervision
from gateway.memory import worker as module
from gateway.memory.hub import Hub, News
from gateway.memory.learning.reading import Reading, conclude
from gateway.memory.worker import Worker
from gateway.store.db import Database
from gateway.store.memory.conversations import add_conversation
from gateway.store.memory.jobs import Job, add_job, finish_job, next_job_at
from tests.gateway.store.test_conversations import make
from tests.waiting import PATIENCE, until


class Failing(Database):
    """Its next ``failures`` writes meet a full disk."""

    failures = 0

    async def write(self, fn: Callable[[Any], Any]) -> Any:
        if self.failures:
            self.failures -= 1
            raise HearthError("no space left", code="disk_full", status=503)
        return await super().write(fn)


async def test_jobs_go_on_after_the_database_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "_FIRST_WAIT_SECONDS", 0.01)
    database = Failing(tmp_path / "hearth.db")
    database.open()
    done = asyncio.Event()

    async def handle(job: Job) -> None:
        await database.write(lambda c: finish_job(c, job))
        done.set()

    worker = Worker(database, {"facts": handle})
    try:
        await worker.start(Supervision())
        await database.write(lambda c: add_conversation(c, make()))
        await database.write(lambda c: add_job(c, "facts", "c1", now=1.0))
        database.failures = 3
        worker.wake()
        await asyncio.wait_for(done.wait(), PATIENCE)
    finally:
        await worker.close()
        database.close()


async def test_a_job_is_due_after_a_jump_of_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a night in which the machine slept: its monotonic time stood still."""
    jump, dues = 0.0, list[float | None]()
    asleep, done = asyncio.Event(), asyncio.Event()

    def look(*arguments: Any, **fields: Any) -> float | None:
        dues.append(next_job_at(*arguments, **fields))
        return dues[-1]

    def clock() -> float:
        if dues and dues[-1] and not asleep.is_set():
            asleep.set()  # the worker computes how long it sleeps until the job is due
        return time.time() + jump

    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(module, "next_job_at", look)
    monkeypatch.setattr(module, "time", SimpleNamespace(time=clock))
    database = Database(tmp_path / "hearth.db")
    database.open()

    async def handle(job: Job) -> None:
        await database.write(lambda c: finish_job(c, job))
        done.set()

    worker = Worker(database, {"facts": handle})
    due = time.time() + 3600
    try:
        await database.write(lambda c: add_conversation(c, make()))
        await database.write(lambda c: add_job(c, "facts", "c1", now=1.0))
        await database.write(lambda c: c.execute("UPDATE jobs SET not_before = ?", (due,)))
        await worker.start(Supervision())
        await asyncio.wait_for(asleep.wait(), PATIENCE)
        jump = 7200.0
        await asyncio.wait_for(done.wait(), PATIENCE)
    finally:
        await worker.close()
        database.close()


async def test_a_job_that_could_not_be_put_back_is_taken_up_when_its_lease_has_run_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_LEASE_SECONDS", 0.05)
    database = Failing(tmp_path / "hearth.db")
    database.open()
    done = asyncio.Event()

    async def handle(job: Job) -> None:
        if job.attempts == 1:
            database.failures = 1
            raise HearthError("no model")
        await database.write(lambda c: finish_job(c, job))
        done.set()

    worker = Worker(database, {"facts": handle})
    try:
        await database.write(lambda c: add_conversation(c, make()))
        await database.write(lambda c: add_job(c, "facts", "c1", now=1.0))
        await worker.start(Supervision())
        await asyncio.wait_for(done.wait(), PATIENCE)
    finally:
        await worker.close()
        database.close()


async def test_a_running_job_keeps_its_lease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BEAT_SECONDS", 0.01)
    database = Database(tmp_path / "hearth.db")
    database.open()
    leases: list[float] = []

    async def handle(job: Job) -> None:
        while len(set(leases)) < 3:
            leases.append(await database.read(lambda c: c.execute("SELECT leased_until FROM jobs").get))
        await database.write(lambda c: finish_job(c, job))

    worker = Worker(database, {"facts": handle})
    try:
        await database.write(lambda c: add_conversation(c, make()))
        await database.write(lambda c: add_job(c, "facts", "c1", now=1.0))
        await worker.start(Supervision())
        await until(lambda: len(set(leases)) == 3)
        await worker.ended("c1", PATIENCE)
        assert leases == sorted(leases)
        assert await database.read(next_job_at) is None, "it was done"
    finally:
        await worker.close()
        database.close()


async def test_jobs_that_nobody_handles_wait_and_are_in_nobody_s_way(tmp_path: Path) -> None:
    """As those of facts do, after `memory.facts` was turned off."""
    database = Database(tmp_path / "hearth.db")
    database.open()
    done = asyncio.Event()

    async def handle(job: Job) -> None:
        await database.write(lambda c: finish_job(c, job))
        done.set()

    worker = Worker(database, {"tasks": handle})
    try:
        await database.write(lambda c: add_conversation(c, make()))
        await database.write(lambda c: add_job(c, "facts", "c1", now=1.0))
        await database.write(lambda c: add_job(c, "tasks", "c1", now=1.0))
        with capture_logs() as logs:
            await worker.start(Supervision())
            await asyncio.wait_for(done.wait(), PATIENCE)
            await until(lambda: not worker.running)
        assert logs == []
        assert await database.read(next_job_at) == 0.0, "it waits for its handler"
    finally:
        await worker.close()
        database.close()


async def test_what_an_interrupted_job_was_writing_is_told(tmp_path: Path) -> None:
    database, hub = Database(tmp_path / "hearth.db"), Hub(Peers(), "news")
    database.open()
    writing, may_go_on = threading.Event(), threading.Event()

    async def handle(job: Job) -> None:
        def keep(_: apsw.Connection) -> list[str]:
            writing.set()
            assert may_go_on.wait(PATIENCE)
            return ["fruit"]

        reading = Reading(conversation=make(), messages=[], texts=[], through=0, more=False)
        await conclude(database, hub, job, reading, keep)

    worker = Worker(database, {"facts": handle})
    try:
        await worker.start(Supervision())
        await database.write(lambda c: add_conversation(c, make()))
        async with hub.listen("c1") as listener:
            await database.write(lambda c: add_job(c, "facts", "c1", now=1.0))
            worker.wake()
            await until(writing.is_set)
            closing = asyncio.create_task(worker.close())
            await asyncio.sleep(0.01)
            may_go_on.set()
            await closing
            assert await asyncio.wait_for(listener.next(), PATIENCE) == News("facts", {"changed": ["fruit"]})
        assert await database.read(next_job_at) is None, "it was done"
    finally:
        may_go_on.set()
        await worker.close()
        database.close()
