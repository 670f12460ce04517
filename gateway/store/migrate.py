"""Numbered migrations: ``migrations/NNN_name.sql``, each applied once, in order, in one transaction."""

from __future__ import annotations

import re
import time
from pathlib import Path

import apsw
from msgspec import Struct

from gateway.base.errors import ConfigurationError

_FOLDER = Path(__file__).resolve().parent / "migrations"
_FILE_NAME = re.compile(r"(\d{3})_(\w+)\.sql")


class Migration(Struct, frozen=True):
    """One step of the schema. Versions count from 1."""

    version: int
    name: str
    sql: str


def migrations(folder: Path = _FOLDER) -> list[Migration]:
    """The shipped migrations in order. Raises ConfigurationError when the installation is incomplete."""
    found = []
    for file in sorted(folder.glob("*.sql")):
        match = _FILE_NAME.fullmatch(file.name)
        if match is None:
            raise ConfigurationError(f"{file} is not a migration: its name must look like 001_keys.sql")
        found.append(Migration(int(match[1]), match[2], file.read_text(encoding="utf-8")))
    versions = [each.version for each in found]
    if versions != [*range(1, len(versions) + 1)] or not versions:
        raise ConfigurationError(f"migrations are missing from {folder}: install hearth again")
    return found


def schema_version(connection: apsw.Connection) -> int:
    """Version of the open database; 0 for a blank one."""
    known = connection.execute(
        "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version'"
    ).get
    if not known:
        return 0
    return int(connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").get)


def check_version(present: int, newest: int, where: object) -> None:
    """Raise ConfigurationError for a database of a newer program."""
    if present > newest:
        raise ConfigurationError(
            f"the database {where} has schema version {present}, and this program knows versions "
            f"up to {newest}: install a newer hearth, or choose another --data-dir",
            code="database_too_new",
        )


def migrate(connection: apsw.Connection, path: Path, steps: list[Migration] | None = None) -> int:
    """Bring the database at ``path`` to the newest version and return that version.

    Raises ConfigurationError for a database of a newer program.
    """
    steps = migrations() if steps is None else steps
    present, newest = schema_version(connection), steps[-1].version
    check_version(present, newest, path)
    for step in steps:
        if step.version > present:
            _apply(connection, step)
    return newest


def _apply(connection: apsw.Connection, step: Migration) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have applied it while this one waited for the lock.
        if schema_version(connection) < step.version:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS schema_version "
                "(version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at REAL NOT NULL) STRICT"
            )
            connection.execute(step.sql)
            connection.execute(
                "INSERT INTO schema_version VALUES (?, ?, ?)", (step.version, step.name, time.time())
            )
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
