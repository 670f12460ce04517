"""Files that commands write, locked and only where they fit, and the database, whether a server runs or not."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from gateway.base.errors import HearthError
from gateway.cli.common.text import size_text
from gateway.config.settings import Settings
from gateway.store.db import Database
from gateway.store.open import make_database


@contextmanager
def locked(path: Path, busy: HearthError) -> Iterator[BinaryIO]:
    """Open a file, created if missing, for one process at a time. Raises ``busy`` while another one has it.

    The lock belongs to the descriptor: it ends with the process, however that ends.
    """
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise busy from None
        yield file


def check_disk(folder: Path, missing: int, error: type[HearthError]) -> None:
    """Raise ``error`` when ``folder`` has no room for the missing bytes of a download."""
    free = shutil.disk_usage(folder).free
    if missing > free:
        raise error(
            f"not enough disk space: {size_text(missing)} are still to come, {folder} has "
            f"{size_text(free)} free; make room or choose another --data-dir"
        )


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
