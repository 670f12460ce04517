"""The SQLite database: one writer thread, a few reader threads, every write durable once acknowledged.

Several processes may open the same file, such as the server and the command line. SQLite's locks order their writes; a
writer waits up to :data:`BUSY_SECONDS` for another process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw
import structlog
from msgspec import Struct

from gateway.base.errors import ConfigurationError, HearthError
from gateway.base.peers import Peers
from gateway.base.private import make_private
from gateway.store.faults import translated
from gateway.store.migrate import migrate

BUSY_SECONDS = 10.0
READERS = 3
TRIAL_SECONDS = 1.0
_JOURNAL_LIMIT_BYTES = 64 * 1024 * 1024
_LOCK_POLL_SECONDS = 0.02

T = TypeVar("T")
_log = structlog.get_logger(__name__)


class DatabaseHealth(Struct, frozen=True):
    """``size_bytes`` is the size on disk, including the write-ahead log. ``server`` is "" for SQLite."""

    path: str
    size_bytes: int
    schema_version: int
    sqlite_version: str
    server: str = ""


class Database:
    """An open database file. The functions passed to it run in its threads and must not keep the connection."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.peers: Peers = Peers()
        self._version = 0
        self._truncating = False  # the write-ahead log may hold erased text
        self._writer: apsw.Connection | None = None
        self._readers: list[apsw.Connection] = []
        self._trial: Future[None] | None = None  # the last write of check()
        self._tried_at = 0.0  # monotonic
        self._local = threading.local()
        self._write_pool = ThreadPoolExecutor(1, "db-write")
        self._read_pool = ThreadPoolExecutor(READERS, "db-read")

    @property
    def local(self) -> Database:
        """The database of this gateway's own tables: pages, code, caches."""
        return self

    def probe(self) -> str:
        """Describe the database at its address, without changing it. Raises HearthError if nothing answers."""
        return str(self.path)

    def open(self) -> None:
        """Create or open the file and migrate it.

        Raises ConfigurationError (unusable folder, damaged or too new file) or HearthError (locked, disk full).
        """
        _create_private(self.path)
        with translated(self.path):
            connection = _connect(self.path, apsw.SQLITE_OPEN_READWRITE)
            try:
                _use_wal(connection)
                connection.pragma("synchronous", "FULL")
                connection.pragma("foreign_keys", True)
                connection.pragma("secure_delete", True)  # overwrite deleted rows
                connection.pragma("journal_size_limit", _JOURNAL_LIMIT_BYTES)
                self._version = migrate(connection, self.path)
                self._truncating = not _truncated(connection)
            except BaseException:
                connection.close()
                raise
        self._writer = connection

    def close(self) -> None:
        """Finish queued work, then close every connection. Closing twice is harmless."""
        self._read_pool.shutdown(wait=True)
        self._write_pool.shutdown(wait=True)
        for reader in self._readers:
            reader.close()
        self._readers.clear()
        if self._writer is not None:
            self._writer.close()  # the last connection checkpoints and removes the WAL file
            self._writer = None

    async def write(self, fn: Callable[[apsw.Connection], T]) -> T:
        """Run ``fn`` in a write transaction; return once it is on disk. An exception rolls it back.

        Cancelling the caller does not cancel a submitted write.
        """
        future = asyncio.wrap_future(self._submit(self._write_pool, self._in_write, fn))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            future.add_done_callback(_report_unawaited)
            raise

    async def read(self, fn: Callable[[apsw.Connection], T]) -> T:
        """Run ``fn`` on a read-only connection, in one snapshot."""
        return await asyncio.wrap_future(self._submit(self._read_pool, self._in_read, fn))

    def write_sync(self, fn: Callable[[apsw.Connection], T]) -> T:
        """:meth:`write` for code without an event loop."""
        return self._submit(self._write_pool, self._in_write, fn).result()

    def read_sync(self, fn: Callable[[apsw.Connection], T]) -> T:
        """:meth:`read` for code without an event loop."""
        return self._submit(self._read_pool, self._in_read, fn).result()

    async def truncate_log(self) -> None:
        """Checkpoint and empty the write-ahead log, so that it holds no erased text.

        An active reader in any process, or a full disk, prevents that; then every later write tries again. Closing the
        database, and opening it after a crash, empty the log as well.
        """
        self._truncating = True
        await self.write(lambda connection: None)

    async def check(self) -> None:
        """Check that the database can be read and written. Raises HearthError when it cannot.

        Callers share one write per :data:`TRIAL_SECONDS`, and wait that long at most: a busy writer is no fault.
        """
        await self.read(lambda connection: connection.execute("SELECT 1 FROM schema_version").get)
        now = time.monotonic()
        if self._trial is None or (self._trial.done() and now - self._tried_at > TRIAL_SECONDS):
            self._tried_at = now
            self._trial = self._submit(self._write_pool, self._in_write, self._trial_write)
        outcome = asyncio.wrap_future(self._trial)
        # This marks a late failure as retrieved; the next caller gets it.
        outcome.add_done_callback(asyncio.Future.exception)
        await asyncio.wait({outcome}, timeout=TRIAL_SECONDS)
        if outcome.done():
            outcome.result()

    def health(self) -> DatabaseHealth:
        """Facts about the database that need no connection."""
        size = 0
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                size += Path(f"{self.path}{suffix}").stat().st_size
        return DatabaseHealth(str(self.path), size, self._version, apsw.sqlite_lib_version())

    def _trial_write(self, connection: apsw.Connection) -> None:
        """Write a page: SQLite writes this number even if it does not change."""
        connection.pragma("user_version", connection.pragma("user_version"))

    def _submit(
        self,
        pool: ThreadPoolExecutor,
        run: Callable[[Callable[[apsw.Connection], T]], T],
        fn: Callable[[apsw.Connection], T],
    ) -> Future[T]:
        try:
            return pool.submit(run, fn)
        except RuntimeError:  # the executor refuses work after shutdown
            raise HearthError("the database is closed: the server is stopping", status=503) from None

    def _in_write(self, fn: Callable[[apsw.Connection], T]) -> T:
        connection = self._writer
        assert connection is not None, "Database.open() comes first"
        with translated(self.path):
            connection.execute("BEGIN IMMEDIATE")
            result = transaction(connection, fn)
            if self._truncating:
                self._truncating = not _truncated(connection)
            return result

    def _in_read(self, fn: Callable[[apsw.Connection], T]) -> T:
        with translated(self.path):
            connection: apsw.Connection | None = getattr(self._local, "connection", None)
            if connection is None:
                connection = _connect(self.path, apsw.SQLITE_OPEN_READONLY)
                self._local.connection = connection
                self._readers.append(connection)
            connection.execute("BEGIN")
            return transaction(connection, fn)


def transaction(connection: apsw.Connection, fn: Callable[[apsw.Connection], T]) -> T:
    """Run ``fn`` in the transaction that has begun, then end that."""
    try:
        result = fn(connection)
        connection.execute("COMMIT")
    except BaseException as error:
        if connection.in_transaction:  # a full disk has already rolled back
            connection.execute("ROLLBACK")
        if isinstance(error, StopIteration):  # a future refuses it, and its caller would wait forever
            raise RuntimeError("a function for the database raised StopIteration") from error
        raise
    return result


def _truncated(connection: apsw.Connection) -> bool:
    """Empty the write-ahead log; False when a reader needs it, or the disk fails."""
    connection.set_busy_timeout(0)
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except (apsw.BusyError, apsw.LockedError):
        return False
    except (apsw.FullError, apsw.IOError) as error:  # the write itself is on disk
        _log.warning("the write-ahead log keeps erased text until it can be emptied", problem=str(error))
        return False
    finally:
        connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    return True


def _connect(path: Path, mode: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=mode)
    connection.set_busy_timeout(int(BUSY_SECONDS * 1000))
    return connection


def _use_wal(connection: apsw.Connection) -> None:
    """Switch to write-ahead logging.

    When two processes create the file at once, SQLite reports the collision without waiting for the busy timeout.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.pragma("journal_mode", "WAL")
            return
        except apsw.BusyError:
            if time.monotonic() > deadline:
                raise
            time.sleep(_LOCK_POLL_SECONDS)


def _create_private(path: Path) -> None:
    """Create the folder (0700) and the file (0600) if they are missing: they hold prompts and hashes."""
    try:
        make_private(path.parent)
        # Never open and close an existing file: that would drop this process's locks on it.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        if path.is_file():
            path.chmod(0o600)  # SQLite gives the WAL file the mode of the database
    except OSError as error:
        raise ConfigurationError(
            f"the database {path} cannot be created or opened: {error.strerror}. "
            "Check the folder's owner and mode, or choose another --data-dir",
            code="database_unavailable",
        ) from error


def _report_unawaited(future: asyncio.Future[Any]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        _log.error("a write failed after its request was cancelled", error=repr(error))
