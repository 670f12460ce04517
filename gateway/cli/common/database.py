"""The database as commands use it: beside a server that may be running, or without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.store.db import Database


@contextmanager
def opened_database(path: Path) -> Iterator[Database]:
    """The database at ``path``, created and migrated when needed."""
    database = Database(path)
    database.open()
    try:
        yield database
    finally:
        database.close()
