"""Migrations on PostgreSQL: all that are missing in one transaction, under an advisory lock."""

from __future__ import annotations

import time
from pathlib import Path

from gateway.base.errors import ConfigurationError
from gateway.store.migrate import check_version, migrations
from gateway.store.postgres.dialect import translated_migration
from gateway.store.postgres.session import Session

_FOLDER = Path(__file__).resolve().parent / "migrations"
_FIRST = "023_shared"
_LOCK = 0x6865617274680003
_PREPARE = (
    "CREATE SCHEMA IF NOT EXISTS hearth; CREATE TABLE IF NOT EXISTS schema_version "
    "(version bigint PRIMARY KEY, name text NOT NULL, applied_at double precision NOT NULL)"
)


_KNOWN = "SELECT to_regclass('hearth.schema_version') IS NOT NULL"
_OLDEST = 13
# Whether the user may create the schema, or owns what is there.
_MAY = """
SELECT coalesce(
  (SELECT pg_has_role(nspowner, 'USAGE') FROM pg_namespace WHERE nspname = 'hearth'),
  has_database_privilege(current_database(), 'CREATE'))
"""


def migrate(connection: Session, where: str) -> int:
    """Bring the schema `hearth` to the newest version and return that version.

    Raises ConfigurationError for a database of a newer program, or one that cannot store every text.
    """
    _check_server(connection, where)
    steps = migrations()
    connection.script(f"BEGIN; SELECT pg_advisory_xact_lock({_LOCK})")
    try:
        if not connection.execute(_KNOWN).get:
            connection.script(_PREPARE)
        present: int = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").get
        check_version(present, steps[-1].version, where)
        for version, name, statements in _statements(present):
            for statement in statements:
                connection.script(statement)
            connection.execute("INSERT INTO schema_version VALUES (?, ?, ?)", (version, name, time.time()))
        connection.script("COMMIT")
    except BaseException:
        if not connection.closed:
            connection.script("ROLLBACK")
        raise
    return steps[-1].version


def inspect(connection: Session, where: str) -> str:
    """Findings of :func:`migrate` in words, without a change.

    Raises ConfigurationError where a gateway would not start.
    """
    _check_server(connection, where)
    if not connection.execute(_MAY).get:
        user = connection.execute("SELECT current_user").get
        raise ConfigurationError(
            f"the user {user} may not create or change the schema `hearth` of the database {where}: connect as its "
            "owner, or, if there is none yet, as the owner of the database"
        )
    newest = migrations()[-1].version
    if not connection.execute(_KNOWN).get:
        return "no schema yet, which the first start creates; no extension is needed"
    present: int = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").get
    check_version(present, newest, where)
    return f"schema version {present} of {newest}; no extension is needed"


def _check_server(connection: Session, where: str) -> None:
    if connection.encoding != "UTF8":
        raise ConfigurationError(
            f"the database {where} has the encoding {connection.encoding}: create one with `createdb -E UTF8 -T "
            "template0`"
        )
    major = int(connection.server_version.partition(".")[0].split()[0])
    if major < _OLDEST:
        raise ConfigurationError(
            f"the database {where} is on PostgreSQL {connection.server_version}: hearth needs {_OLDEST} or newer"
        )


def _statements(present: int) -> list[tuple[int, str, list[str]]]:
    """Version, name and statements of each missing migration."""
    own = {file.stem: file.read_text(encoding="utf-8") for file in _FOLDER.glob("*.sql")}
    first = int(_FIRST[:3])
    found = [(first, _FIRST, [own[_FIRST]])] if present < first else []
    for step in migrations():
        name = f"{step.version:03}_{step.name}"
        if step.version > max(present, first):
            found.append(
                (step.version, name, [own[name]] if name in own else translated_migration(name, step.sql))
            )
    return found
