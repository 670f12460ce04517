"""The store on PostgreSQL.

Writes are serial, as on SQLite: each transaction begins with an advisory lock, which the command line's processes wait
for too. So functions that read before they write need no other isolation. A gateway also holds a session lock on the
connection that writes, shared with other gateways, so that `hearth store copy` runs while there is none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Literal, TypeVar, cast

import apsw
import psycopg
from psycopg.conninfo import conninfo_to_dict

from gateway.base.errors import ConfigurationError, HearthError
from gateway.store.db import BUSY_SECONDS, Database, DatabaseHealth, transaction
from gateway.store.postgres.faults import translated_faults
from gateway.store.postgres.migrate import inspect, migrate
from gateway.store.postgres.peers import PostgresPeers, fenced
from gateway.store.postgres.session import CONNECT, Session

_WRITER, _GATEWAY = 0x6865617274680001, 0x6865617274680002
_WRITE = f"BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({_WRITER})"
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_POLL_SECONDS = 0.1

Use = Literal["gateway", "alone", "command"]
T = TypeVar("T")


class PostgresDatabase(Database):
    """A database server's schema `hearth`; pages, code and caches are in the SQLite file ``local``.

    ``use``: that of a gateway, that of the only program besides commands, or that of a command.
    """

    def __init__(self, url: str, local: Database, use: Use = "command") -> None:
        super().__init__(local.path)
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            raise ConfigurationError(
                "store.url is not valid: it has the form postgresql://user@host:5432/database"
            ) from None
        self.where = f"{parts.get('host') or 'local'}/{parts.get('dbname') or ''}"
        self._url, self._local_database, self._use = url, local, use
        self.peers: PostgresPeers = PostgresPeers(self)
        self._server_version, self._size = "", 0
        self._write_connection: Session | None = None
        self._read_connections: list[Session] = []

    @property
    def local(self) -> Database:
        return self._local_database

    def open(self) -> None:
        """Connect, migrate, and open the local file.

        Raises ConfigurationError, and HearthError if the server cannot be reached or is in use.
        """
        with translated_faults(self.where):
            connection = Session(self._url)
            self._server_version = connection.server_version
            try:
                self._version = migrate(connection, self.where)
                self._claim(connection, BUSY_SECONDS)
                self.peers.begin(connection)
            except BaseException:
                connection.close()
                raise
        self._write_connection = connection
        try:
            self._local_database.open()
        except BaseException:
            self.close()
            raise

    def probe(self) -> str:
        with translated_faults(self.where):
            connection = Session(self._url, readonly=True)
            try:
                return (
                    f"PostgreSQL {connection.server_version}, {self.where}, {inspect(connection, self.where)}"
                )
            finally:
                connection.close()

    def close(self) -> None:
        super().close()
        for connection in (*self._read_connections, self._write_connection):
            if connection is not None:
                connection.close()
        self._read_connections.clear()
        self._write_connection = None
        self._local_database.close()

    async def truncate_log(self) -> None:
        """Nothing: PostgreSQL overwrites erased text when it vacuums and recycles its log."""

    async def check(self) -> None:
        await super().check()
        self._size = await self.read(
            lambda c: int(c.execute("SELECT pg_database_size(current_database())").get)
        )
        await self._local_database.check()

    def health(self) -> DatabaseHealth:
        """The size is that of the last :meth:`check`."""
        version = f"PostgreSQL {self._server_version}"
        return DatabaseHealth(self.where, self._size, self._version, apsw.sqlite_lib_version(), version)

    async def write(self, fn: Callable[[apsw.Connection], T]) -> T:
        return await super().write(fenced(fn))

    async def apart(self, fn: Callable[[apsw.Connection], T]) -> T:
        """Run ``fn`` in the session that writes, outside of a transaction; again if that session has ended."""
        return await asyncio.wrap_future(self._submit(self._write_pool, self._in_session, fn))

    async def listen(self) -> psycopg.AsyncConnection:
        """A connection for notifications."""
        return await psycopg.AsyncConnection.connect(self._url, **CONNECT)

    def _in_session(self, fn: Callable[[apsw.Connection], T]) -> T:
        with translated_faults(self.where):
            connection = self._writer_session()
            try:
                return fn(cast("apsw.Connection", connection))
            except psycopg.OperationalError:
                if not connection.closed:
                    raise
                return fn(cast("apsw.Connection", self._writer_session()))

    def _trial_write(self, connection: apsw.Connection) -> None:
        connection.execute("UPDATE request_totals SET records = records")

    def _in_write(self, fn: Callable[[apsw.Connection], T]) -> T:
        with translated_faults(self.where):
            return transaction(self._begun(self._writer_session, _WRITE), fn)

    def _in_read(self, fn: Callable[[apsw.Connection], T]) -> T:
        with translated_faults(self.where):
            return transaction(self._begun(self._reader_session, _READ), fn)

    def _begun(self, session: Callable[[], Session], begin: str) -> apsw.Connection:
        """A session in a transaction. One that the server has ended meanwhile is replaced: nothing was done in it."""
        connection = session()
        try:
            connection.script(begin)
        except psycopg.OperationalError:
            if not connection.closed:
                connection.script("ROLLBACK")
                raise
            connection = session()
            connection.script(begin)
        return cast("apsw.Connection", connection)

    def _writer_session(self) -> Session:
        """Runs in the writing thread alone."""
        if self._write_connection is None or self._write_connection.closed:
            connection = Session(self._url)
            try:
                self._claim(connection, 0.0)
            except BaseException:
                connection.close()
                raise
            self._write_connection = connection
        return self._write_connection

    def _reader_session(self) -> Session:
        found: Session | None = getattr(self._local, "session", None)
        if found is None or found.closed:
            if found in self._read_connections:
                self._read_connections.remove(found)
            found = Session(self._url, readonly=True)
            self._local.session = found
            self._read_connections.append(found)
        return found

    def _claim(self, connection: Session, seconds: float) -> None:
        """Become one of the gateways, or the only program; wait up to ``seconds`` for those that are about to end."""
        shared = "_shared" if self._use == "gateway" else ""
        other = "`hearth store copy` uses" if shared else "gateways use"
        deadline = time.monotonic() + seconds
        while self._use != "command" and not (
            connection.execute(f"SELECT pg_try_advisory_lock{shared}({_GATEWAY})").get
        ):
            if time.monotonic() >= deadline:
                raise HearthError(
                    f"{other} the database {self.where}: try again once that has ended",
                    code="database_in_use",
                    status=503,
                    retry_after=BUSY_SECONDS,
                )
            time.sleep(_POLL_SECONDS)
