"""Access to the database from commands, whether a server runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.config.settings import Settings
from gateway.store.db import Database
from gateway.store.open import make_database


@contextmanager
def opened_database(path: Path) -> Iterator[Database]:
    """Open the SQLite file at ``path``, created and migrated if necessary."""
    with _opened(Database(path)) as database:
        yield database


@contextmanager
def opened_store(settings: Settings) -> Iterator[Database]:
    """Open the database of keys, request log and conversations, created and migrated if necessary."""
    with _opened(make_database(settings)) as database:
        yield database


def store_exists(settings: Settings) -> bool:
    """Whether there is one, so that looking creates none."""
    return bool(settings.store.url) or settings.database_path.exists()


@contextmanager
def _opened(database: Database) -> Iterator[Database]:
    database.open()
    try:
        yield database
    finally:
        database.close()
