from __future__ import annotations

import asyncio
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest
import structlog

from gateway.base.errors import ConfigurationError, HearthError
from gateway.cli.common.files import opened_database
from gateway.store.db import Database
from gateway.store.migrate import migrations
from tests.gateway.store.full_disk import full_disk
from tests.waiting import PATIENCE


def put(value: str) -> object:
    return lambda connection: (
        connection.execute("INSERT INTO wiki_state VALUES (?, ?)", (value, value)) and None
    )


def log_bytes(database: Database) -> int:
    """Size of the write-ahead log."""
    return Path(f"{database.path}-wal").stat().st_size


def names(connection: apsw.Connection) -> list[str]:
    return [str(row[0]) for row in connection.execute("SELECT name FROM wiki_state ORDER BY name")]


def test_a_blank_file_gets_every_migration_and_safe_settings(tmp_path: Path) -> None:
    with opened_database(tmp_path / "hearth.db") as database:
        versions = database.read_sync(
            lambda c: [row[0] for row in c.execute("SELECT version FROM schema_version ORDER BY version")]
        )
        settings = database.write_sync(
            lambda c: {name: c.pragma(name) for name in ("journal_mode", "synchronous", "foreign_keys")}
        )
        health = database.health()
    assert versions == [step.version for step in migrations()]
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}
    assert health.schema_version == versions[-1]
    assert health.sqlite_version == apsw.sqlite_lib_version()
    assert health.size_bytes > 4096


def test_opening_again_keeps_the_data_and_migrates_nothing(tmp_path: Path) -> None:
    path = tmp_path / "hearth.db"
    with opened_database(path) as database:
        database.write_sync(put("kept"))  # type: ignore[arg-type]
        applied = database.read_sync(lambda c: c.execute("SELECT applied_at FROM schema_version").fetchall())
    with opened_database(path) as database:
        assert database.read_sync(names) == ["kept"]
        again = database.read_sync(lambda c: c.execute("SELECT applied_at FROM schema_version").fetchall())
    assert again == applied
    assert not Path(f"{path}-wal").exists(), "closing the last connection must leave one file"


def test_files_and_folder_are_private(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data" / "hearth.db"
    with opened_database(path) as database:
        database.write_sync(put("x"))  # type: ignore[arg-type]
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        for suffix in ("", "-wal", "-shm"):
            assert stat.S_IMODE(Path(f"{path}{suffix}").stat().st_mode) == 0o600
    path.chmod(0o644)
    with opened_database(path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_failed_write_changes_nothing_and_the_next_one_works(database: Database) -> None:
    def fails(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO wiki_state VALUES ('half', '')")
        raise ValueError("stop here")

    with pytest.raises(ValueError, match="stop here"):
        await database.write(fails)
    await database.write(put("whole"))  # type: ignore[arg-type]
    assert await database.read(names) == ["whole"]


@pytest.mark.parametrize("how", ["write", "read"])
async def test_whatever_a_function_raises_reaches_its_caller(database: Database, how: str) -> None:
    """A future cannot hold StopIteration: its caller would wait for ever."""
    with pytest.raises(RuntimeError, match="StopIteration"):
        await asyncio.wait_for(getattr(database, how)(lambda c: next(iter(()))), PATIENCE)
    await database.write(put("a"))  # type: ignore[arg-type]
    assert await database.read(names) == ["a"]


async def test_a_log_that_cannot_be_emptied_fails_no_write(database: Database) -> None:
    """What was committed is told to be committed; the log is emptied later."""
    await database.write(lambda c: c.execute("CREATE TABLE large (text)") and None)
    size = database.path.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with structlog.testing.capture_logs() as logs:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))  # the file cannot grow, the log can
        try:
            await database.write(lambda c: c.execute("INSERT INTO large VALUES (zeroblob(100000))") and None)
            await database.truncate_log()
            await database.write(put("a"))  # type: ignore[arg-type]
            assert log_bytes(database) > 0
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [each["log_level"] for each in logs] == ["warning", "warning"]
    await database.write(put("b"))  # type: ignore[arg-type]
    assert log_bytes(database) == 0
    assert await database.read(names) == ["a", "b"]


async def test_readers_cannot_write(database: Database) -> None:
    with pytest.raises(ConfigurationError, match="cannot be opened for writing"):
        await database.read(put("x"))  # type: ignore[arg-type]


async def test_a_read_sees_one_moment(database: Database) -> None:
    written, first = threading.Event(), threading.Event()

    def reads_twice(connection: apsw.Connection) -> tuple[list[str], list[str]]:
        before = names(connection)
        first.set()
        assert written.wait(5)
        return before, names(connection)

    reading = asyncio.create_task(database.read(reads_twice))
    await asyncio.to_thread(first.wait, 5)
    await database.write(put("new"))  # type: ignore[arg-type]
    written.set()
    assert await reading == ([], [])
    assert await database.read(names) == ["new"]


async def test_a_cancelled_caller_does_not_lose_its_write(database: Database) -> None:
    started, release = threading.Event(), threading.Event()

    def slow(connection: apsw.Connection) -> None:
        started.set()
        assert release.wait(5)
        connection.execute("INSERT INTO wiki_state VALUES ('slow', '')")

    running = asyncio.create_task(database.write(slow))
    queued = asyncio.create_task(database.write(put("queued")))  # type: ignore[arg-type]
    await asyncio.to_thread(started.wait, 5)
    running.cancel()
    queued.cancel()
    assert await asyncio.gather(running, queued, return_exceptions=True) and running.cancelled()
    release.set()
    await database.write(put("after"))  # type: ignore[arg-type]
    assert await database.read(names) == ["after", "queued", "slow"]


async def test_a_write_that_fails_after_its_caller_left_is_logged(database: Database) -> None:
    started, release = threading.Event(), threading.Event()

    def fails(_: apsw.Connection) -> None:
        started.set()
        release.wait(5)
        raise ValueError("nobody waits")

    with structlog.testing.capture_logs() as logs:
        task = asyncio.create_task(database.write(fails))
        await asyncio.to_thread(started.wait, 5)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        release.set()
        await database.write(put("after"))  # type: ignore[arg-type]
        await asyncio.sleep(0)
    assert [entry["log_level"] for entry in logs] == ["error"]
    assert "nobody waits" in logs[0]["error"]


async def test_many_writers_and_readers_at_once(database: Database) -> None:
    await asyncio.gather(*(database.write(put(f"{n:03}")) for n in range(100)))  # type: ignore[arg-type]
    counts = await asyncio.gather(*(database.read(lambda c: len(names(c))) for _ in range(50)))
    assert counts == [100] * 50


async def test_a_closed_database_says_so(tmp_path: Path) -> None:
    with opened_database(tmp_path / "hearth.db") as database:
        await database.check()
    with pytest.raises(HearthError, match="closed"):
        await database.check()
    database.close()


async def test_a_full_disk_is_a_clear_error_and_passes(database: Database) -> None:
    def fill(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO wiki_state VALUES ('big', zeroblob(0) || hex(randomblob(4000000)))")

    pages = await database.write(lambda c: int(c.pragma("page_count")))
    await database.write(lambda c: c.pragma("max_page_count", pages + 10))
    with pytest.raises(HearthError, match="no space left") as caught:
        await database.write(fill)
    assert caught.value.code == "disk_full" and caught.value.retry_after
    await database.write(lambda c: c.pragma("max_page_count", 1_000_000))
    await database.write(put("works again"))  # type: ignore[arg-type]
    assert await database.read(names) == ["works again"]


async def test_the_check_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.db.TRIAL_SECONDS", 0.05)
    with full_disk() as disk, opened_database(tmp_path / "hearth.db") as database:
        await database.check()
        disk.full = True
        await asyncio.sleep(0.1)  # the last trial no longer counts
        for _ in range(3):
            with pytest.raises(HearthError, match="no space left") as caught:
                await database.check()
            assert (caught.value.code, caught.value.status) == ("disk_full", 503)
        disk.full = False
        await asyncio.sleep(0.1)
        await database.check()


async def test_one_trial_serves_all_who_check(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.db.TRIAL_SECONDS", 60.0)
    await asyncio.gather(*(database.check() for _ in range(100)))
    size = database.health().size_bytes
    await asyncio.gather(*(database.check() for _ in range(100)))
    assert database.health().size_bytes == size


async def test_a_busy_writer_is_no_fault(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.db.TRIAL_SECONDS", 0.05)
    started, release = threading.Event(), threading.Event()

    def slow(_: apsw.Connection) -> None:
        started.set()
        assert release.wait(30)

    writing = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(started.wait, 30)
    await database.check()
    assert not writing.done()
    release.set()
    await writing
    await database.check()


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hearth.db"
    path.write_bytes(b"this is not a database at all " * 400)
    with pytest.raises(ConfigurationError, match="damaged") as caught:
        Database(path).open()
    assert caught.value.code == "database_corrupt"


def test_damage_met_while_running_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "hearth.db"
    with opened_database(path) as database:
        database.write_sync(put("x" * 50_000))  # type: ignore[arg-type]
    size = path.stat().st_size
    with path.open("r+b") as file:  # everything but the schema's first pages
        file.seek(4096 * 2)
        file.write(b"\xff" * (size - 4096 * 2))
    with opened_or_error(path) as outcome:
        assert outcome.code == "database_corrupt"


@contextmanager
def opened_or_error(path: Path) -> Iterator[HearthError]:
    database = Database(path)
    try:
        with pytest.raises(HearthError) as caught:
            database.open()
            database.read_sync(names)
            database.write_sync(put("y"))  # type: ignore[arg-type]
        yield caught.value
    finally:
        database.close()


def test_an_unusable_folder_is_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="--data-dir"):
        Database(tmp_path / "file" / "hearth.db").open()
    (tmp_path / "hearth.db").mkdir()
    with pytest.raises(ConfigurationError, match="--data-dir"):
        Database(tmp_path / "hearth.db").open()


def test_a_lock_held_too_long_is_a_retriable_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.db.BUSY_SECONDS", 0.1)
    path = tmp_path / "hearth.db"
    with opened_database(path) as database, opened_database(path) as other:
        entered, release = threading.Event(), threading.Event()
        with ThreadPoolExecutor(1) as pool:
            holding = pool.submit(other.write_sync, lambda _: entered.set() or release.wait(5))
            assert entered.wait(5)
            with pytest.raises(HearthError, match="locked") as caught:
                database.write_sync(put("x"))  # type: ignore[arg-type]
            release.set()
            holding.result()
        assert caught.value.retry_after and caught.value.status == 503
        database.write_sync(put("x"))  # type: ignore[arg-type]


_OPENER = """
import sys, pathlib
from gateway.store.db import Database
database = Database(pathlib.Path(sys.argv[1]))
database.open()
for n in range(20):
    database.write_sync(lambda c: c.execute("INSERT INTO wiki_state VALUES (?, '')", (f"{sys.argv[2]}-{n}",)) and None)
database.close()
"""


def test_processes_that_create_the_file_together_share_it(tmp_path: Path) -> None:
    path = tmp_path / "data" / "hearth.db"
    command = [sys.executable, "-c", _OPENER, str(path)]
    children = [subprocess.Popen([*command, str(n)], stderr=subprocess.PIPE) for n in range(3)]
    for child in children:
        _, problems = child.communicate(timeout=60)
        assert child.returncode == 0, problems.decode()
    with opened_database(path) as database:
        assert len(database.read_sync(names)) == 60


_WRITER = """
import itertools, sys, pathlib
from gateway.store.db import Database
database = Database(pathlib.Path(sys.argv[1]))
database.open()
for n in itertools.count(int(sys.argv[2])):
    database.write_sync(lambda c: c.execute("INSERT INTO wiki_state VALUES (?, '')", (f"{n:09}",)) and None)
    print(n, flush=True)
"""


def test_a_killed_writer_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    path, acknowledged = tmp_path / "hearth.db", 0
    for wanted in (1, 7, 40):
        child = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path), str(acknowledged)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(wanted)]
        os.kill(child.pid, signal.SIGKILL)
        lines += child.stdout.read().splitlines(keepends=True)
        child.stdout.close()
        child.wait(10)
        last = max(int(line) for line in lines if line.endswith("\n"))
        with opened_database(path) as database:
            stored = database.read_sync(names)
            assert stored[: last + 1] == [f"{n:09}" for n in range(last + 1)]
            assert database.read_sync(lambda c: c.pragma("integrity_check")) == "ok"
        acknowledged = len(stored)  # one more may be stored than was reported
