"""Copy the shared tables from SQLite to PostgreSQL or back: in one transaction, verified before it ends."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import ConfigurationError, HearthError, InvalidRequestError
from gateway.store.db import Database
from gateway.store.postgres.database import PostgresDatabase

_ROWS = 500
# Of the tables that gateways share, in the order of their creation: a row refers to earlier ones, or to its own table.
_SHAPES = """
SELECT c.relname, a.attname, a.atttypid = 'boolean'::regtype, a.attidentity <> '',
  coalesce(a.attnum = ANY (i.indkey::int2[]), false)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_index AS i ON i.indrelid = c.oid AND i.indisprimary
WHERE c.relnamespace = 'hearth'::regnamespace AND c.relkind = 'r' AND a.attgenerated = ''
AND c.relname <> 'schema_version' AND a.attname <> 'rowid' ORDER BY c.oid, a.attnum
"""


class Table(Struct):
    """The columns of a table, and which of them are booleans, its key, its number."""

    name: str
    columns: list[str] = []
    booleans: set[int] = set()
    key: list[int] = []
    number: str | None = None


def copy_store(
    source: Database, target: Database, *, replace: bool, progress: Callable[[int], object]
) -> dict[str, int]:
    """Copy all rows and compare their hashes; returns their number by table.

    ``progress`` gets numbers of rows. Raises ConfigurationError if ``target`` has rows and is not
    to be replaced, HearthError if the copy differs.
    """
    shared = source if isinstance(source, PostgresDatabase) else target
    tables = shared.read_sync(_tables)
    on_server = target is shared

    def copy(read: apsw.Connection, write: apsw.Connection) -> dict[str, int]:
        _clear(tables, write, replace)
        write.execute("SET CONSTRAINTS ALL DEFERRED" if on_server else "PRAGMA defer_foreign_keys = ON")
        for table in tables:
            for rows in _batches(table, read):
                _insert(table, write, rows)
                progress(len(rows))
        _set_numbers(tables, write, _numbers(tables, read, from_server=not on_server), on_server=on_server)
        counts = {}
        for table in tables:
            ours, theirs = _digest(table, read), _digest(table, write)
            if ours != theirs:
                raise HearthError(
                    f"the copy of the table {table.name} differs: nothing was copied", code="copy_differs"
                )
            counts[table.name] = ours[0]
        return counts

    return source.read_sync(lambda read: target.write_sync(lambda write: copy(read, write)))


def _tables(connection: apsw.Connection) -> list[Table]:
    found: dict[str, Table] = {}
    for name, column, boolean, identity, key in connection.execute(_SHAPES).fetchall():
        table = found.setdefault(str(name), Table(str(name), [], set(), []))
        at = len(table.columns)
        table.columns.append(str(column))
        if boolean:
            table.booleans.add(at)
        if identity:
            table.number = str(column)
        if key:
            table.key.append(at)
    return list(found.values())


def _clear(tables: list[Table], connection: apsw.Connection, replace: bool) -> None:
    for table in reversed(tables):
        if table.name != "request_totals" and not replace:
            count = connection.execute(f"SELECT count(*) FROM {table.name}").get
            if count:
                raise ConfigurationError(
                    f"the target has {count} rows in the table {table.name}: choose an empty database, or --replace "
                    "to erase conversations, facts, tasks, keys and request log there"
                )
        connection.execute(f"DELETE FROM {table.name}")


def _batches(table: Table, connection: apsw.Connection) -> Iterator[list[tuple[Any, ...]]]:
    key = ", ".join(table.columns[at] for at in table.key)
    places = ", ".join("?" * len(table.key))
    where, after = "", ()
    while True:
        rows: list[tuple[Any, ...]] = connection.execute(
            f"SELECT {', '.join(table.columns)} FROM {table.name} {where} ORDER BY {key} LIMIT {_ROWS}", after
        ).fetchall()
        if not rows:
            return
        yield [
            tuple(
                bool(value) if at in table.booleans and value is not None else value
                for at, value in enumerate(row)
            )
            for row in rows
        ]
        where, after = f"WHERE ({key}) > ({places})", tuple(rows[-1][at] for at in table.key)


def _insert(table: Table, connection: apsw.Connection, rows: list[tuple[Any, ...]]) -> None:
    places = ", ".join("?" * len(table.columns))
    statement = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({places})"
    for row in rows:
        try:
            connection.execute(statement, row)
        except InvalidRequestError as error:
            key = ", ".join(str(row[at]) for at in table.key)
            raise InvalidRequestError(f"{table.name} {key}: {error.message}") from error
    if table.name == "tasks":  # a trigger has set `origin` to `message`
        at = {name: table.columns.index(name) for name in ("origin", "owner", "id")}
        connection.executemany(
            "UPDATE tasks SET origin = ? WHERE owner = ? AND id = ?",
            [tuple(row[place] for place in at.values()) for row in rows],
        )


def _digest(table: Table, connection: apsw.Connection) -> tuple[int, bytes]:
    count, digest = 0, hashlib.blake2b()
    for rows in _batches(table, connection):
        count += len(rows)
        for row in rows:
            digest.update(msgspec.msgpack.encode(row))
    return count, digest.digest()


def _numbers(tables: list[Table], connection: apsw.Connection, *, from_server: bool) -> dict[str, int]:
    """The last number that each table has given, erased rows included."""
    if not from_server:
        return dict(connection.execute("SELECT name, seq FROM sqlite_sequence"))
    found = {}
    for table in tables:
        if table.number is not None:
            sequence = f"{table.name}_{table.number}_seq"
            last = connection.execute(f"SELECT last_value FROM {sequence} WHERE is_called").get
            if last is not None:
                found[table.name] = int(last)
    return found


def _set_numbers(
    tables: list[Table], connection: apsw.Connection, numbers: dict[str, int], *, on_server: bool
) -> None:
    for table in tables:
        last = numbers.get(table.name)
        if table.number is None or not last:
            continue
        if on_server:
            connection.execute(f"SELECT setval('{table.name}_{table.number}_seq', ?)", (last,))
        else:
            connection.execute("DELETE FROM sqlite_sequence WHERE name = ?", (table.name,))
            connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", (table.name, last))
