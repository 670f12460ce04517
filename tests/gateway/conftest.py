"""An open database in the test's own folder, and a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.cli.common.files import opened_database
from gateway.config.settings import Settings, StoreSettings
from gateway.store.db import Database
from gateway.store.open import make_database
from tests.postgres import Server


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """The one that a server or command with the data directory ``tmp_path / "data"`` has."""
    with opened_database(tmp_path / "data" / "hearth.db") as opened:
        yield opened


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    pytest.importorskip("psycopg", reason="needs hearth[postgres]")
    server = Server("fsync=off")
    settings = Settings(
        data_dir=tmp_path_factory.mktemp("postgresql"), store=StoreSettings(url=server.database())
    )
    migrated = make_database(settings)
    migrated.open()
    migrated.close()
    server.template = "db1"
    yield server
    server.remove()
