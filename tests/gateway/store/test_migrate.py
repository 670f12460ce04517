from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from gateway.base.errors import ConfigurationError
from gateway.cli.common.files import opened_database
from gateway.store.db import Database
from gateway.store.migrate import Migration, migrate, migrations, schema_version


@pytest.mark.parametrize("steps", range(1, len(migrations())))
def test_every_older_schema_is_brought_up_to_date(tmp_path: Path, steps: int) -> None:
    path = tmp_path / "hearth.db"
    connection = apsw.Connection(str(path))
    migrate(connection, path, migrations()[:steps])
    connection.close()
    with opened_database(path) as database:
        assert database.health().schema_version == migrations()[-1].version


def test_a_failing_migration_leaves_nothing_behind(tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "x.db"))
    steps = [
        Migration(1, "good", "CREATE TABLE a (x)"),
        Migration(2, "bad", "CREATE TABLE b (x); SELECT nonsense;"),
    ]
    with pytest.raises(apsw.SQLError):
        migrate(connection, tmp_path / "x.db", steps)
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    assert sorted(tables) == ["a", "schema_version"]
    assert schema_version(connection) == 1
    connection.close()


def test_a_database_of_a_newer_program_is_refused_naming_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "hearth.db"
    with opened_database(path) as database:
        database.write_sync(
            lambda c: c.execute("INSERT INTO schema_version VALUES (99, 'future', 0)") and None
        )
    with pytest.raises(ConfigurationError, match=rf"version 99.*up to {migrations()[-1].version}"):
        Database(path).open()


def test_misnamed_and_missing_migrations_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="missing"):
        migrations(tmp_path)
    (tmp_path / "002_second.sql").touch()
    with pytest.raises(ConfigurationError, match="missing"):
        migrations(tmp_path)
    (tmp_path / "first.sql").touch()
    with pytest.raises(ConfigurationError, match="name must look like"):
        migrations(tmp_path)
