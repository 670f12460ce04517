"""The tests of shared tables run on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.config.settings import Settings, StoreSettings
from gateway.store.db import Database
from gateway.store.open import make_database

# About files of SQLite.
_SQLITE = {"test_db", "test_migrate", "test_power_cut", "test_rows"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    module = metafunc.module.__name__.rpartition(".")[2]
    if "database" in metafunc.fixturenames and module not in _SQLITE:
        metafunc.parametrize("database", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "data" / "hearth.db")
    if getattr(request, "param", "sqlite") == "postgresql":
        url = request.getfixturevalue("postgres_server").database()
        opened = make_database(Settings(data_dir=tmp_path / "data", store=StoreSettings(url=url)))
    opened.open()
    yield opened
    opened.close()
