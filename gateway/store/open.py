"""The store that the settings choose."""

from __future__ import annotations

import sys
from typing import Literal

from gateway.base.errors import ConfigurationError
from gateway.config.settings import Settings
from gateway.store.db import Database


def make_database(settings: Settings, *, gateway: bool = False) -> Database:
    """The SQLite file, or the database of `store.url`, not yet open.

    Raises ConfigurationError if `store.url` is wrong, or hearth[postgres] is missing.
    """
    local = Database(settings.database_path)
    url = settings.store.url
    return postgres_database(url, local, "gateway" if gateway else "command") if url else local


def postgres_database(url: str, local: Database, use: Literal["gateway", "alone", "command"]) -> Database:
    """The database at ``url``, with ``local`` for pages and code. Raises ConfigurationError."""
    try:
        # Late, because most installations have no psycopg.
        from gateway.store.postgres.database import PostgresDatabase
    except ImportError as error:
        raise ConfigurationError(
            f"store.url needs psycopg ({error}): `{sys.executable} -m pip install 'psycopg[binary]>=3.2,<4'`",
            code="postgres_missing",
        ) from error
    return PostgresDatabase(url, local, use)
