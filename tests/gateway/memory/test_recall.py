"""Facts found by words and by meaning, each owner's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import apsw
import pytest

from gateway.base.errors import ModelUnavailableError
from gateway.base.supervised import Supervision
from gateway.memory.learning.facts import scopes_of
from gateway.memory.learning.recall import FactDocuments, Recall
from gateway.store.db import Database
from gateway.store.memory.conversations import add_conversation, erase_conversation
from gateway.store.memory.facts import Fact, count_fact_vectors, end_fact, put_fact, search_facts, undo_fact
from tests.gateway.memory.test_facts import fact
from tests.gateway.store.test_conversations import make
from tests.gateway.vectors.words import WordSearch
from tests.waiting import until

OWN = scopes_of(make("c1", "ann"))


class Memory(WordSearch):
    """Facts with an indexer and both ways to search them."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, FactDocuments())
        self.recall = Recall(database, self.queries)

    async def put(self, text: str, key: str, owner: str = "ann", **changes: object) -> Fact | None:
        return await self.database.write(lambda c: put_fact(c, fact(text, key, owner, **changes)))  # type: ignore[arg-type]

    async def index(self) -> None:
        """Wait until every live fact has its vector."""
        await self.indexer.caught_up()

        async def all_done() -> bool:
            done, _, total = await self.database.read(count_fact_vectors)
            return done == total

        await until(all_done)

    async def keys(self, text: str, owner: str = "ann", limit: int = 4) -> list[str]:
        return [each.key for each in await self.recall.search(owner, OWN, text, limit)]


@pytest.fixture
async def memory(database: Database) -> AsyncIterator[Memory]:
    made = Memory(database)
    for text, key in (
        ("Lives in Huế with two cats", "home_city"),
        ("Plays chess on Sundays", "hobby"),
        ("Works as a nurse in a hospital", "job"),
    ):
        await made.put(text, key)
    await made.put("Lives in Huế with two cats", "home_city", "bob")
    made.indexer.start(Supervision())
    await made.index()
    yield made
    await made.indexer.close()
    await made.queries.close()


async def test_both_rankings_are_fused(memory: Memory) -> None:
    assert (await memory.keys("Who works as a nurse?"))[0] == "job"
    # Stop words have no place in a search by words, but they have in a vector.
    assert await memory.database.read(lambda c: search_facts(c, "ann", OWN, "as with two", 4)) != []
    assert "job" in await memory.keys("as a as a as a")
    assert await memory.keys("") == []


async def test_owners_never_meet(memory: Memory) -> None:
    mine = await memory.recall.search("ann", OWN, "two cats in Huế", 10)
    theirs = await memory.recall.search("bob", OWN, "two cats in Huế", 10)
    assert {each.owner for each in mine} == {"ann"}
    assert {each.owner for each in theirs} == {"bob"}
    assert await memory.recall.search("eve", OWN, "two cats in Huế", 10) == []
    owners = {call.owner for call in memory.embedder.calls if call.kind == "query"}
    assert owners == {"ann"}, "one text has one vector for all owners"


async def test_what_was_superseded_or_deleted_is_not_recalled(memory: Memory) -> None:
    await memory.put("Moved to Oslo", "home_city")
    assert "home_city" not in await memory.keys("Lives in Huế with two cats")
    await memory.index()
    assert (await memory.keys("Who moved to Oslo?"))[0] == "home_city"
    [job] = [each for each in await memory.recall.search("ann", OWN, "nurse", 1) if each.key == "job"]
    await memory.database.write(lambda c: end_fact(c, job.id, "ann", now=9.0, reason="gone"))
    assert "job" not in await memory.keys("Works as a nurse in a hospital")
    await memory.database.write(lambda c: undo_fact(c, job.id, "ann"))
    assert (await memory.keys("Works as a nurse in a hospital"))[0] == "job"


async def test_erasing_a_conversation_erases_the_vectors_of_its_facts(memory: Memory) -> None:
    await memory.database.write(lambda c: add_conversation(c, make("c9", "ann")))
    await memory.put("Has a secret garden", "garden", conversation="c9")
    await memory.index()
    await memory.database.write(lambda c: erase_conversation(c, "c9", "ann"))

    def left(connection: apsw.Connection) -> int:
        return int(
            connection.execute(
                "SELECT count(*) FROM fact_vectors WHERE fact NOT IN (SELECT seq FROM facts)"
            ).get
        )

    assert await memory.database.read(left) == 0
    assert "garden" not in await memory.keys("Has a secret garden")


async def test_without_the_model_words_must_do(memory: Memory) -> None:
    memory.embedder.error = ModelUnavailableError("gone")
    assert await memory.keys("nurse") == ["job"]
    assert memory.queries.problem == "gone"
    assert [each.key for each in await Recall(memory.database, None).search("ann", OWN, "nurse", 4)] == [
        "job"
    ]
