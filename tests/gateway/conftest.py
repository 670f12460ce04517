"""An open database in the test's own folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.store.db import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """The one that a server or command with the data directory ``tmp_path / "data"`` has."""
    opened = Database(tmp_path / "data" / "hearth.db")
    opened.open()
    yield opened
    opened.close()
