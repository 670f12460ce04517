"""The tests of shared tables run on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.store.db import Database
from tests.postgres import Server

# About files of SQLite.
_SQLITE = {"test_db", "test_migrate", "test_power_cut", "test_rows"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    if "database" in metafunc.fixturenames and module not in _SQLITE:
        metafunc.parametrize("database", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    local = Database(tmp_path / "data" / "hearth.db")
    opened = local
    if getattr(request, "param", "sqlite") == "postgresql":
        pytest.importorskip("psycopg", reason="needs hearth[postgres]")
        # Only where psycopg is installed.
        from gateway.store.postgres.database import PostgresDatabase

        opened = PostgresDatabase(request.getfixturevalue("postgres_server").database(), local)
    opened.open()
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    server = Server("fsync=off")
    yield server
    server.remove()
