"""Access to the database from commands, whether a server runs or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.store.db import Database


@contextmanager
def opened_database(path: Path) -> Iterator[Database]:
    """Open the database at ``path``, created and migrated if necessary."""
    database = Database(path)
    database.open()
    try:
        yield database
    finally:
        database.close()
