"""Erased data is gone from the disk: rows, indexes, recorded prompts, the write-ahead log, continuations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import apsw
import msgspec
import pytest

from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from gateway.store.keys import list_keys
from gateway.store.open import make_database
from tests.gateway.api.conftest import Client, changed, in_process, make_key
from tests.gateway.api.conversations.test_conversations import say, start, talker, text_of
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.memory.test_kills import check_chain
from tests.waiting import until

WORD = "zebraquartz"


def parrot(call: GenerateCall) -> list[str]:
    """All output of the model contains the word: replies, summaries, facts and tasks."""
    text = text_of(call)
    if "list facts worth remembering" in text:
        fact = {"op": "add", "key": WORD, "text": f"Has a {WORD}.", "quote": WORD, "reason": f"said {WORD}"}
        return [msgspec.json.encode([fact]).decode()]
    if "list changes to the tasks" in text:
        task = {"op": "add", "id": "", "title": f"Feed the {WORD}", "quote": WORD}
        return [msgspec.json.encode([task]).decode()]
    return talker(call) if "Summarize the" in text else [f"The {WORD} is well."]


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(parrot)


@pytest.fixture
async def client(settings: Settings, inference: ScriptedInference) -> AsyncIterator[Client]:
    small = changed(settings, "memory", context=1200, ceiling=500, floor=220, answer_tokens=100)
    async with in_process(small, inference) as made:
        yield made


def on_disk(settings: Settings) -> int:
    """Occurrences of the word in the database's files: rows, indexes, free pages, log frames."""
    files = [settings.data_dir / f"hearth.db{suffix}" for suffix in ("", "-wal")]
    return sum(file.read_bytes().lower().count(WORD.encode()) for file in files if file.exists())


def jobs_left(settings: Settings) -> int:
    """The number of jobs that wait or run."""
    if settings.store.url:
        psycopg = pytest.importorskip("psycopg", reason="needs hearth[postgres]")
        with psycopg.connect(settings.store.url) as connection:
            return int(connection.execute("SELECT count(*) FROM hearth.jobs").fetchone()[0])
    database = apsw.Connection(str(settings.data_dir / "hearth.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return int(database.execute("SELECT count(*) FROM jobs").get)
    finally:
        database.close()


async def settled(settings: Settings) -> None:
    """Wait until no job is left."""
    await until(lambda: not jobs_left(settings), "jobs are left")


async def talk(client: Client, settings: Settings, lines: int = 25, title: str = WORD) -> str:
    name = await start(client, title=title)
    for number in range(lines):
        await say(
            client,
            name,
            f"I have a Zebraquartz and I must feed the Zebraquartz {number % 5 + 10} apples. " * 3,
        )
    await settled(settings)
    return name


async def test_nothing_of_an_erased_conversation_stays_on_disk(client: Client, settings: Settings) -> None:
    name = await talk(client, settings)
    assert (await client.get(f"/v1/conversations/{name}/summaries")).json()["data"]
    assert (await client.get("/v1/facts")).json()["data"] and (await client.get("/v1/tasks")).json()["data"]
    kept = await start(client, title="kept")
    await say(client, kept, "Nothing special.")
    assert on_disk(settings) > 100
    assert (await client.delete(f"/v1/conversations/{name}")).status_code == 200
    assert (
        (await client.get("/v1/facts")).json()["data"] == (await client.get("/v1/tasks")).json()["data"] == []
    )
    # Only the reply in the other conversation still has the word.
    await client.delete(f"/v1/conversations/{kept}")
    await start(client)  # a write: it empties the log of writes if something was reading it before
    assert on_disk(settings) == 0


async def test_recorded_prompts_of_other_conversations_go_with_the_facts_and_tasks_they_list(
    client: Client, settings: Settings, inference: ScriptedInference
) -> None:
    learning = inference.script

    def plain(call: GenerateCall) -> list[str]:
        return ["[]"] if "worth remembering" in text_of(call) or "changes to" in text_of(call) else ["Well."]

    inference.script = plain
    other = await start(client, title="other")
    await say(client, other, "Before anything is known.")
    await settled(settings)
    database = apsw.Connection(str(settings.data_dir / "hearth.db"), flags=apsw.SQLITE_OPEN_READONLY)
    kept = "SELECT count(*) FROM requests"
    before = database.execute(kept).get
    assert before == 3, "the reply, and the search for facts and for tasks"

    inference.script = learning
    name = await talk(client, settings, lines=2)
    inference.script = plain
    await say(client, other, "What do you know?")
    await settled(settings)
    assert database.execute(kept).get > before + 3
    assert (await client.delete(f"/v1/conversations/{name}")).status_code == 200
    assert on_disk(settings) == 0
    assert database.execute(kept).get == before
    assert database.execute("SELECT records FROM request_totals").get == before
    assert database.execute("SELECT count(*) FROM request_sources").get == 0
    database.close()


async def test_a_conversation_that_goes_on_from_an_erased_one_forgets_it(
    client: Client, settings: Settings, inference: ScriptedInference
) -> None:
    name = await talk(client, settings, title="pets")
    new = (await client.post(f"/v1/conversations/{name}/rollover")).json()["id"]
    inference.script = lambda call: talker(call) if "Summarize the" in text_of(call) else ["[]"]
    for number in range(25):
        await say(client, new, f"Line {number % 5} has nothing special " * 4)
    await settled(settings)
    assert WORD in str((await client.get(f"/v1/conversations/{new}/summaries")).json()).lower()
    await client.delete(f"/v1/conversations/{name}")
    assert WORD not in str((await client.get(f"/v1/conversations/{new}/context")).json()).lower()
    said = await say(client, new, "Go on.")
    assert said["budget"]["total"] <= said["budget"]["limit"]
    await settled(settings)
    database = apsw.Connection(str(settings.data_dir / "hearth.db"), flags=apsw.SQLITE_OPEN_READONLY)
    check_chain(database, new)
    database.close()
    assert on_disk(settings) == 0


async def test_a_reader_delays_the_log_but_does_not_keep_it(client: Client, settings: Settings) -> None:
    name = await talk(client, settings, lines=3)
    reader = apsw.Connection(str(settings.data_dir / "hearth.db"), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM messages").get == 6
    assert (await client.delete(f"/v1/conversations/{name}")).status_code == 200
    reader.execute("COMMIT")
    reader.close()
    await start(client)  # any later write
    assert on_disk(settings) == 0


async def test_records_of_a_user_are_erased(client: Client, settings: Settings) -> None:
    """Erasing by `user` removes that user's records from the disk and keeps the others'."""
    for user in ("net/nick:ann", "net/nick:bob"):
        asked = {"question": f"Who made {WORD}?", "user": user}
        assert (await client.post("/ask", json=asked)).status_code == 200
        assert (await client.post("/ask", data=asked)).status_code == 200
        chat = {"messages": [{"role": "user", "content": WORD}], "user": user}
        assert (await client.post("/v1/chat/completions", json=chat)).status_code == 200
    none = await client.post("/ask", data={"question": f"Who made {WORD}?", "store": "false"})
    assert none.status_code == 200
    database = apsw.Connection(str(settings.data_dir / "hearth.db"), flags=apsw.SQLITE_OPEN_READONLY)
    totals = (
        "SELECT count(*), records, sum(requests.bytes) - request_totals.bytes FROM requests, request_totals"
    )
    assert database.execute(totals).get == (6, 6, 0)
    for left in (3, 0):
        reply = await client.delete("/v1/requests", params={"user": "net/nick:ann"})
        assert reply.json() == {"user": "net/nick:ann", "requests": left}
    assert database.execute(totals).get == (3, 3, 0)
    database.close()
    assert on_disk(settings) > 0
    assert (await client.delete("/v1/requests", params={"user": "net/nick:bob"})).json()["requests"] == 3
    assert on_disk(settings) == 0
    for query in ("", "?user=", "?user=a&user=b", "?owner=x", "?user=a&x=y"):
        assert (await client.delete(f"/v1/requests{query}")).status_code == 400


async def test_records_of_another_owners_user_stay(settings: Settings, inference: ScriptedInference) -> None:
    keys = {name: {"Authorization": f"Bearer {make_key(settings, name, 'user')}"} for name in ("ann", "bob")}
    async with in_process(settings, inference) as client:
        for headers in keys.values():
            asked = {"question": "who?", "user": "x"}
            assert (await client.post("/ask", json=asked, headers=headers)).status_code == 200
        for _ in range(2):
            gone = await client.delete("/v1/requests", params={"user": "x"}, headers=keys["ann"])
        assert gone.json()["requests"] == 0
        gone = await client.delete("/v1/requests", params={"user": "x"}, headers=keys["bob"])
        assert gone.json()["requests"] == 1


async def fill(client: Client, word: str) -> None:
    """Rows in every table that has an owner's words."""
    await client.post("/v1/assistants", json={"name": f"The {word}", "biography": f"Keeps a {word}."})
    name = await start(client, title=word, assistant=f"The {word}")
    for number in range(12):
        await say(client, name, f"I have a {word} and I must feed the {word} {number % 5 + 10} apples. " * 3)
    await client.post(f"/v1/conversations/{name}/rollover")
    for text in (f"Has a {word}.", f"Had a {word}."):
        await client.post("/v1/facts", json={"key": "pet", "text": text})
    task = (await client.post("/v1/tasks", json={"title": f"Feed the {word}"})).json()["id"]
    steps = [f"remember: the {word} eats hay", f"notify: the {word} is fed"]
    await client.post(f"/v1/tasks/{task}/run", json={"steps": steps, "archetype": "model"})
    await client.post("/v1/responses", json={"input": word})
    await client.post("/ask", json={"question": f"Who made the {word}?"})


async def words_in(settings: Settings, word: str) -> dict[str, int]:
    """Rows of each table that contain the word, the caches of this gateway included."""
    found = {}
    database = make_database(settings)
    await asyncio.to_thread(database.open)
    places = {id(each): each for each in (database, database.local)}.values()
    for place in places:
        tables = (
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'hearth'"
            if place is not database.local
            else "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        )
        for (name,) in await place.read(lambda c, tables=tables: c.execute(tables).fetchall()):
            rows = await place.read(lambda c, name=name: c.execute(f"SELECT * FROM {name}").fetchall())
            if count := sum(word in str(row).lower() for row in rows):
                found[str(name)] = count
    await asyncio.to_thread(database.close)
    return found


@pytest.mark.parametrize("settings", ["sqlite", "postgresql"], indirect=True)
async def test_nothing_of_an_erased_owner_stays_in_any_table(
    settings: Settings, inference: ScriptedInference
) -> None:
    small = changed(settings, "memory", context=1200, ceiling=500, floor=220, answer_tokens=100)
    keys = {name: {"Authorization": f"Bearer {make_key(small, name, 'user')}"} for name in ("ann", "bob")}
    async with in_process(small, inference) as client:
        for name, headers in keys.items():
            client.headers.update(headers)
            inference.script = parrot if name == "ann" else lambda call: ["Well."]
            await fill(client, WORD if name == "ann" else "pigeon")
        await settled(small)
        before = await words_in(small, "pigeon")
        held = await words_in(small, WORD)
        assert {
            "conversations",
            "messages",
            "facts",
            "tasks",
            "requests",
            "responses",
            "notices",
        } <= held.keys()
        owners = await owners_of(small)
        refused = await client.delete("/v1/data", params={"owner": owners["ann"]})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
        assert (await client.delete("/v1/data")).status_code == 400
        client.headers.update(keys["ann"])
        reply = (await client.delete("/v1/data", params={"owner": owners["ann"]})).json()
        assert reply["owner"] == owners["ann"]
        assert reply["erased"]["conversations"] == 2 and reply["erased"]["responses"] == 1
        assert await words_in(small, WORD) == {}
        assert await words_in(small, "pigeon") == before
        assert inference.forgotten[-1] == owners["ann"]
        client.headers["Authorization"] = f"Bearer {make_key(small, 'ops', 'admin')}"
        gone = await client.delete("/v1/data", params={"owner": "key-none"})
        assert (gone.status_code, gone.json()["error"]["param"]) == (404, "owner")
        assert (await client.delete("/v1/data", params={"owner": owners["bob"]})).status_code == 200
        assert await words_in(small, "pigeon") == {}


async def owners_of(settings: Settings) -> dict[str, str]:
    database = make_database(settings)
    await asyncio.to_thread(database.open)
    found = await database.read(list_keys)
    await asyncio.to_thread(database.close)
    return {each.name: each.owner for each in found}
