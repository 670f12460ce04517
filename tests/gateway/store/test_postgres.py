"""What is PostgreSQL's alone: several gateways, restarts, copies, migrations that are translated."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import apsw
import pytest

from gateway.base.errors import ConfigurationError, HearthError
from gateway.cli.common.files import opened_database, opened_store
from gateway.cli.common.runfile import claim
from gateway.cli.doctor.connections import StoreCheck, check_store
from gateway.cli.main import run
from gateway.config.settings import Settings, StoreSettings
from gateway.store.db import Database
from gateway.store.memory.conversations import add_conversation, any_conversation
from gateway.store.memory.facts import put_fact, search_facts
from gateway.store.memory.messages import DuplicateMessageError, messages_between
from gateway.store.migrate import migrations
from gateway.store.open import make_database, postgres_database
from gateway.store.postgres.dialect import translated_migration
from tests.gateway.store.test_conversations import fact, make, say
from tests.postgres import Server
from tests.waiting import until


@pytest.fixture
def settings(postgres_server: Server, tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", store=StoreSettings(url=postgres_server.database()))


@pytest.fixture
def opened(settings: Settings) -> Iterator[Database]:
    database = make_database(settings, gateway=True)
    database.open()
    yield database
    database.close()


def test_gateways_share_the_database_and_a_copy_does_not(
    opened: Database, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.postgres.database.BUSY_SECONDS", 0.0)
    alone = postgres_database(settings.store.url, Database(tmp_path / "copy.db"), "alone")
    second = make_database(settings, gateway=True)
    second.open()
    second.write_sync(lambda c: add_conversation(c, make()))
    with pytest.raises(HearthError, match="gateways use the database"):
        alone.open()
    assert opened.read_sync(lambda c: any_conversation(c, "c1")).owner == "ann"
    opened.close()
    second.close()
    alone.open()
    command = make_database(settings)  # as `hearth key` does
    command.open()
    command.close()
    with pytest.raises(HearthError, match="`hearth store copy` uses the database"):
        make_database(settings, gateway=True).open()
    alone.close()


def test_an_address_that_leads_nowhere(tmp_path: Path) -> None:
    for url, problem in (
        (f"postgresql://someone:secret@/db?host={tmp_path}", "cannot be reached"),
        ("postgresql://[", "store.url is not valid"),
    ):
        with pytest.raises(HearthError, match=problem) as caught:
            make_database(Settings(data_dir=tmp_path, store=StoreSettings(url=url))).open()
        assert "secret" not in str(caught.value)


def test_the_doctor_asks_the_database_server(opened: Database, settings: Settings, tmp_path: Path) -> None:
    found = check_store(settings)
    assert found is not None
    assert (found.verdict, found.found.split(",")[0].split()[0]) == ("yes", "PostgreSQL")
    url = f"postgresql://someone:secret@/db?host={tmp_path}"
    gone = check_store(Settings(data_dir=tmp_path, store=StoreSettings(url=url)))
    assert gone is not None
    assert gone.verdict == "no"
    assert "cannot be reached" in gone.found
    assert "secret" not in gone.found
    assert check_store(Settings(data_dir=tmp_path)) is None


def test_the_doctor_says_why_no_gateway_would_start(
    postgres_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def found(url: str) -> StoreCheck:
        made = check_store(Settings(data_dir=tmp_path, store=StoreSettings(url=url)))
        assert made is not None
        return made

    def status(url: str) -> int:
        monkeypatch.setenv("HEARTH_STORE__URL", url)
        return run(["doctor", "--data-dir", str(tmp_path)])

    postgres_server.sql("postgres", "CREATE DATABASE blank TEMPLATE template0")
    url = postgres_server.url("blank")
    assert "no schema yet" in found(url).found
    assert "no schema yet" in found(url).found, "nothing was made"
    postgres_server.sql("postgres", "CREATE ROLE guest LOGIN")
    guest = url.replace("postgres@", "guest@")
    assert "may not create or change the schema" in found(guest).found
    with opened_store(Settings(data_dir=tmp_path, store=StoreSettings(url=url))):
        assert f"schema version {migrations()[-1].version} of" in found(url).found
    assert "may not create or change the schema" in found(guest).found
    assert status(guest) == 78
    assert status(url) == 0

    postgres_server.sql("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0")
    latin = postgres_server.url("latin")
    assert "createdb -E UTF8" in found(latin).found
    assert status(latin) == 78

    gone = f"postgresql://someone@/db?host={tmp_path}"
    assert "cannot be reached" in found(gone).found
    assert status(gone) == 0, "a gateway would wait for it"


def test_a_connection_that_is_refused_until_settings_change(
    postgres_server: Server,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refused(url: str) -> str:
        monkeypatch.setenv("HEARTH_STORE__URL", url)
        assert run(["key", "list", "--data-dir", str(tmp_path)]) == 78, "as `hearth start`"
        return capsys.readouterr().err

    postgres_server.sql("postgres", "CREATE ROLE barred")
    postgres_server.sql("postgres", "CREATE DATABASE closed TEMPLATE template0")
    postgres_server.sql("postgres", "REVOKE CONNECT ON DATABASE closed FROM PUBLIC")
    postgres_server.sql("postgres", "CREATE ROLE stranger LOGIN")
    url = postgres_server.url("closed")
    assert 'database "nowhere" does not exist): create it with `createdb' in refused(
        postgres_server.url("nowhere")
    )
    assert 'role "nobody" does not exist): create it with `createuser' in refused(
        url.replace("postgres@", "nobody@")
    )
    assert "is not permitted to log in" in refused(url.replace("postgres@", "barred@"))
    assert "GRANT CONNECT" in refused(url.replace("postgres@", "stranger@"))


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ('FATAL:  password authentication failed for user "hearth"', "passfile"),
        ("fe_sendauth: no password supplied", "passfile"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "hearth", database "hearth"', "pg_hba"),
        ("server does not support SSL, but SSL was required", "sslmode"),
        ("FATAL:  sorry, too many clients already", None),
        ("FATAL:  the database system is starting up", None),
        ("SSL connection has been closed unexpectedly", None),
    ],
)
def test_refusals_that_pass_by_themselves_are_told_apart(said: str, remedy: str | None) -> None:
    faults = pytest.importorskip("gateway.store.postgres.faults", reason="needs hearth[postgres]")
    psycopg = pytest.importorskip("psycopg")
    with pytest.raises(HearthError) as caught, faults.translated_faults("db/hearth"):
        raise psycopg.OperationalError(f'connection to server at "db", port 5432 failed: {said}')
    assert isinstance(caught.value, ConfigurationError) == (remedy is not None)
    assert (caught.value.code, caught.value.status) == ("database_unavailable", 503)
    assert (caught.value.retry_after is None) == (remedy is not None)
    assert (remedy or "cannot be reached") in caught.value.message


def test_a_text_with_a_zero_character_is_refused_by_name(opened: Database) -> None:
    opened.write_sync(lambda c: add_conversation(c, make()))
    with pytest.raises(HearthError, match=r"U\+0000") as caught:
        opened.write_sync(lambda c: say(c, "m1", text="a\0b"))
    assert caught.value.status == 400


def test_a_transaction_that_went_on_after_a_failed_statement_is_no_success(opened: Database) -> None:
    def swallow(c: apsw.Connection) -> None:
        add_conversation(c, make())
        with pytest.raises(apsw.ConstraintError):
            add_conversation(c, make())

    with pytest.raises(RuntimeError, match="went on"):
        opened.write_sync(swallow)


async def test_a_server_that_restarts_loses_no_acknowledged_message(tmp_path: Path) -> None:
    server = Server()
    settings = Settings(data_dir=tmp_path / "data", store=StoreSettings(url=server.database()))
    database = make_database(settings, gateway=True)
    await asyncio.to_thread(database.open)
    kept: set[str] = set()
    problems: list[HearthError] = []
    running = True

    async def writer(number: int) -> None:
        count = 0
        while running:
            name = f"{number}-{count}"
            try:
                await database.write(partial(say, name=name))
            except DuplicateMessageError:  # it was stored when the connection broke
                count += 1
            except HearthError as error:
                problems.append(error)
                await asyncio.sleep(0.01)
            else:
                kept.add(name)
                count += 1

    try:
        await database.write(lambda c: add_conversation(c, make()))
        writers = [asyncio.create_task(writer(number)) for number in range(4)]
        for mode in ("immediate", "fast"):
            wanted, failed = len(kept) + 20, len(problems)
            await until(lambda wanted=wanted: len(kept) >= wanted)  # type: ignore[misc]
            await asyncio.to_thread(server.stop, mode)
            await until(lambda failed=failed: len(problems) > failed)  # type: ignore[misc]
            await asyncio.to_thread(server.start)
        wanted = len(kept) + 20
        await until(lambda: len(kept) >= wanted)
        running = False
        await asyncio.gather(*writers)
        stored = await database.read(lambda c: messages_between(c, "c1", 0, 2**62))
        assert kept <= {message.id for message in stored}
        assert len({message.id for message in stored}) == len(stored)
        assert {(error.status, error.code) for error in problems} == {(503, "database_unavailable")}
        assert all(error.retry_after for error in problems)
    finally:
        await asyncio.to_thread(database.close)
        await asyncio.to_thread(server.remove)


def test_copies_are_verified_and_go_both_ways(settings: Settings, tmp_path: Path) -> None:
    file, url = tmp_path / "one.db", settings.store.url

    def fill(c: apsw.Connection) -> None:
        add_conversation(c, make("c2"))
        add_conversation(c, make("c1", previous="c2"))
        for number in range(1200):
            say(c, f"m{number}", "user" if number % 2 else "assistant")
        c.execute("DELETE FROM messages WHERE seq > 1100")
        put_fact(c, fact("Ann", 3, "zebras"))

    with opened_database(file) as source:
        source.write_sync(fill)
        before = _dump(source)
    assert run(["store", "copy", str(file), url]) == 0
    assert run(["store", "copy", str(file), url]) == 78, "it is not empty any more"
    with opened_store(settings) as database:
        assert _dump(database) == before
        found = database.read_sync(lambda c: search_facts(c, "ann", [("channel", "c1")], "any zebra?", 9))
        assert [each.key for each in found] == ["zebras"]
        assert database.write_sync(lambda c: say(c, "new")).seq == 1201, "no number is given twice"
        after = _dump(database)
    assert run(["store", "copy", url, str(file)]) == 78
    assert run(["store", "copy", url, str(file), "--replace"]) == 0
    with opened_database(file) as again:
        assert _dump(again) == after
        assert again.write_sync(lambda c: say(c, "newer")).seq == 1202


def test_no_copy_of_a_file_that_a_server_uses_and_one_to_a_new_file(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, new = tmp_path / "one" / "hearth.db", tmp_path / "new.db"
    file.parent.mkdir()
    with opened_database(file) as source:
        source.write_sync(lambda c: add_conversation(c, make()))
    with claim(file.parent):
        assert run(["store", "copy", str(file), settings.store.url]) == 1
    assert "a server uses" in capsys.readouterr().err
    assert run(["store", "copy", str(file), settings.store.url]) == 0
    assert run(["store", "copy", settings.store.url, str(new)]) == 0
    with opened_database(new) as copied:
        assert copied.read_sync(lambda c: any_conversation(c, "c1")).owner == "ann"
    assert run(["store", "copy", settings.store.url, str(tmp_path / "none" / "new.db")]) == 78
    assert run(["store", "copy", str(new), "store.url"]) == 78
    assert "store.url is not set" in capsys.readouterr().err


def test_every_migration_is_applied_or_replaced(opened: Database) -> None:
    """The newest ones as SQLite has them."""
    assert opened.health().schema_version == migrations()[-1].version
    known = opened.read_sync(lambda c: c.execute("SELECT max(version) FROM schema_version").get)
    assert known == migrations()[-1].version


def test_simple_migrations_are_translated_and_others_need_a_file() -> None:
    assert translated_migration(
        "030_new",
        "ALTER TABLE facts ADD COLUMN seen INTEGER NOT NULL DEFAULT 0 CHECK (seen IN (0, 1)); -- a note; more\n"
        "CREATE TABLE people (seq INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, at REAL) STRICT;\n"
        "ALTER TABLE wiki_pages ADD COLUMN x TEXT;",
    ) == [
        "ALTER TABLE facts ADD COLUMN seen boolean NOT NULL DEFAULT '0'",
        "CREATE TABLE people (seq bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, "
        'name text COLLATE "C" NOT NULL, at double precision)',
    ]
    with pytest.raises(ConfigurationError, match=r"write gateway/store/postgres/migrations/031_other\.sql"):
        translated_migration("031_other", "DROP TABLE facts;")


def _dump(database: Database) -> object:
    def read(c: apsw.Connection) -> object:
        return [
            messages_between(c, "c1", 0, 2**62),
            any_conversation(c, "c1"),
            c.execute("SELECT id, key, text, valid_from FROM facts").fetchall(),
        ]

    return database.read_sync(read)
