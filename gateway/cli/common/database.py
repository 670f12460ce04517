"""Access to the database from commands, whether a server runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from gateway.config.settings import Settings
from gateway.store.db import Database
from gateway.store.open import make_database


@contextmanager
def opened(database: Database) -> Iterator[Database]:
    """Open a database, created and migrated if necessary."""
    database.open()
    try:
        yield database
    finally:
        database.close()


def opened_database(path: Path) -> AbstractContextManager[Database]:
    """Open the SQLite file at ``path``."""
    return opened(Database(path))


def opened_store(settings: Settings) -> AbstractContextManager[Database]:
    """Open the database of keys, request log and conversations."""
    return opened(make_database(settings))


def store_exists(settings: Settings) -> bool:
    """Whether the database exists; opening it would create it."""
    return bool(settings.store.url) or settings.database_path.exists()
