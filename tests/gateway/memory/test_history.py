"""Messages found by meaning, and how far the search by words finds what was meant (``eval/history.toml``)."""

from __future__ import annotations

import tomllib
from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from gateway.base.errors import ModelUnavailableError
from gateway.base.supervised import Supervision
from gateway.cli.common.files import opened_database
from gateway.config.settings import MemorySettings
from gateway.memory.history import History, MessageDocuments, Recalled
from gateway.store.db import Database
from gateway.store.memory.conversations import add_conversation, erase_conversation
from gateway.store.memory.history import count_message_vectors, said
from gateway.store.migrate import migrate, migrations
from gateway.vectors.queries import Queries
from tests.conftest import ROOT
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.store.test_conversations import make, say
from tests.gateway.vectors.words import WordSearch
from tests.waiting import until

SET = tomllib.loads(Path(ROOT / "eval" / "history.toml").read_text(encoding="utf-8"))
HERE = make("c1", "ann", participants=[])


def history(database: Database, queries: Queries | None = None) -> History:
    return History(database, ScriptedInference(), MemorySettings(), queries)


async def recalled(
    database: Database, found: History, asked: str, shown: Sequence[int] = ()
) -> Recalled | None:
    return await found.recall(HERE, asked, shown, 300)


async def fill(database: Database, lines: list[str]) -> None:
    def store(connection: apsw.Connection) -> None:
        add_conversation(connection, HERE)
        for number, text in enumerate(lines):
            say(connection, f"m{number}", text=text)

    await database.write(store)


async def test_questions_find_what_they_are_about_and_other_lines_nothing(database: Database) -> None:
    await fill(database, [*(pair["said"] for pair in SET["pair"]), *SET["other"]["lines"]])
    found = history(database)
    first = quoted = 0
    for pair in SET["pair"]:
        seqs = (await found.search("ann", None, pair["asked"]))[:5]
        texts = [each.text for each in await database.read(lambda c, s=seqs: said(c, s))]  # type: ignore[misc]
        assert pair["said"] in texts, pair
        first += texts[0] == pair["said"]
        quotes = await recalled(database, found, pair["asked"])
        quoted += quotes is not None and pair["said"] in quotes.block.text
    assert first >= 58 and quoted >= 57
    needless = [text for text in SET["nothing"]["lines"] if await recalled(database, found, text)]
    assert len(needless) <= 1, needless


async def test_of_two_messages_the_one_in_the_words_of_the_question_is_first(database: Database) -> None:
    await fill(database, ["I have eleven hives", "hive 10 gave 192 kg", *SET["other"]["lines"]])
    first = (await history(database).search("ann", None, "how many hives do I have"))[:1]
    [best] = await database.read(lambda connection: said(connection, first))
    assert best.text == "I have eleven hives"


async def first_found(database: Database, asked: str) -> str:
    first = (await history(database).search("ann", None, asked))[:1]
    [best] = await database.read(lambda connection: said(connection, first))
    return best.text


async def test_an_answer_without_the_words_of_the_question_is_found(database: Database) -> None:
    lines = [
        "Was the kiln hard to repair?",
        "Only the thermostat, it took two evenings.",
        *SET["other"]["lines"],
    ]
    await fill(database, lines)
    assert await first_found(database, "What was hard about repairing the kiln?") == lines[1]
    quotes = await recalled(database, history(database), "What was hard about repairing the kiln?")
    assert quotes is not None and lines[1] in quotes.block.text
    [only] = await history(database).search("ann", None, "kiln")  # what is no question wants the word itself
    assert (await database.read(lambda c: said(c, [only])))[0].text == lines[0]


async def test_messages_of_a_day_have_its_date(database: Database) -> None:
    lines = ["Lunch with Petra was long.", *SET["other"]["lines"], "Lunch with Petra was short."]
    await fill(database, lines)
    at = datetime(2024, 5, 3, 12).timestamp()  # noqa: DTZ001 - the machine's own zone
    await database.write(
        lambda c: c.execute("UPDATE messages SET created_at = ? WHERE id = 'm0'", (at,)).fetchall()
    )
    assert await first_found(database, "Who was I at lunch with on 3 May 2024?") == lines[0]
    assert await first_found(database, "Who was I at lunch with?") == lines[-1]
    assert await first_found(database, "Who was I at lunch with on 0001-01-01?") == lines[-1]


async def test_a_quote_comes_with_what_was_decided_later(database: Database) -> None:
    lines = [
        "The van for the move is booked for Saturday the 18th of April.",
        "The van for the move is white and has a dent.",
        *SET["other"]["lines"],
        "They rang: change of plan, it comes on Saturday the 25th of April.",
        *SET["nothing"]["lines"],
    ]
    await fill(database, lines)
    quotes = await recalled(database, history(database), "When is the van for the move booked?")
    assert quotes is not None and "18th" in quotes.block.text and "25th" in quotes.block.text
    assert quotes.block.text.index("18th") < quotes.block.text.index("25th")
    # Also where the prompt has the decision, but in front of the quotes.
    in_prompt = [*range(len(SET["other"]["lines"]) + 3, len(lines) + 1)]
    again = await recalled(database, history(database), "When is the van for the move booked?", in_prompt)
    assert again is not None and again.block.text.index("18th") < again.block.text.index("25th")


async def test_a_quote_without_a_time_has_no_date(database: Database) -> None:
    await fill(database, [pair["said"] for pair in SET["pair"]])
    await database.write(lambda c: c.execute("UPDATE messages SET created_at = 0").fetchall())  # imported
    quotes = await recalled(database, history(database), SET["pair"][0]["asked"])
    assert quotes is not None and "- undated, Ann: " in quotes.block.text and "1970" not in quotes.block.text


async def test_messages_from_before_the_index_are_found(tmp_path: Path) -> None:
    path = tmp_path / "hearth.db"
    old = apsw.Connection(str(path))
    migrate(old, path, [step for step in migrations() if step.version < 16])
    old.execute(
        "INSERT INTO conversations (id, owner, kind, policy, title, participants, persona, instructions, model, "
        "created_at, updated_at) VALUES ('c1', 'ann', 'chat', 'ceiling', '', '[]', '', '', '', 1, 1)"
    )
    for name, failed in (("m1", 0), ("m2", 1)):
        old.execute(
            "INSERT INTO messages (id, conversation, role, speaker, text, tokens, round, failed, redactions, "
            "created_at) VALUES (?, 'c1', 'user', '', 'Đường to the zebras', 1, 1, ?, 0, 1)",
            (name, failed),
        )
    old.close()
    with opened_database(path) as database:
        for query in ("zebra", "duong"):
            seqs = await history(database).search("ann", None, query)
            assert [each.id for each in await database.read(lambda c, s=seqs: said(c, s))] == ["m1"]  # type: ignore[misc]


class Meaning(WordSearch):
    """A log of messages with an indexer, and both ways to search it."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, MessageDocuments())
        self.history = history(database, self.queries)

    async def indexed(self) -> None:
        async def all_done() -> bool:
            done, _, total = await self.database.read(count_message_vectors)
            return done == total

        await until(all_done)

    async def texts(self, asked: str) -> list[str]:
        seqs = await self.history.search("ann", None, asked)
        return [each.text for each in await self.database.read(lambda c: said(c, seqs))]


@pytest.fixture
async def meaning(database: Database) -> AsyncIterator[Meaning]:
    made = Meaning(database)
    await fill(database, ["Where it is as it was: blue.", *(f"line{n} word{n} thing{n}" for n in range(60))])
    made.indexer.start(Supervision())
    await made.indexed()
    yield made
    await made.indexer.close()
    await made.queries.close()


async def test_a_message_is_found_and_recalled_by_its_vector(meaning: Meaning) -> None:
    # Stop words have no weight in the search by words, but they have in a vector.
    asked = "as it was where it is so"
    assert (await meaning.texts(asked))[0] == "Where it is as it was: blue."
    quotes = await recalled(meaning.database, meaning.history, asked)
    assert quotes is not None and "Where it is as it was: blue." in quotes.block.text
    assert quotes.sources == ["c1"] and quotes.block.tokens <= 300
    assert await recalled(meaning.database, history(meaning.database), asked) is None, (
        "words alone say nothing"
    )


async def test_without_the_model_words_must_do(meaning: Meaning) -> None:
    meaning.embedder.error = ModelUnavailableError("gone")
    assert await meaning.texts("word7") == ["line7 word7 thing7"]
    assert meaning.queries.problem == "gone"


async def test_vectors_go_with_their_messages_and_follow_their_texts(meaning: Meaning) -> None:
    def change(connection: apsw.Connection) -> None:
        connection.execute("UPDATE messages SET text = 'now a quartz' WHERE id = 'm9'")
        connection.execute("UPDATE messages SET failed = 1 WHERE id = 'm8'")

    await meaning.database.write(change)
    meaning.indexer.wake()
    await meaning.indexed()
    assert (await meaning.texts("a quartz now"))[0] == "now a quartz"
    assert "line7 word7 thing7" not in await meaning.texts("line7 word7 thing7")
    await meaning.database.write(lambda c: erase_conversation(c, "c1", "ann"))

    def left(connection: apsw.Connection) -> list[Any]:
        tables = ("message_vectors", "message_words_docsize")
        return [connection.execute(f"SELECT count(*) FROM {table}").get for table in tables]

    assert await meaning.database.read(left) == [0, 0]


async def test_another_model_makes_all_vectors_again(meaning: Meaning) -> None:
    meaning.embedder.space, meaning.embedder.identity = "other:512", "other.gguf"  # type: ignore[misc]
    meaning.queries.stale()
    await until(lambda: _space_is(meaning.database, "other:512"))
    await meaning.indexed()
    assert (await meaning.texts("as it was where it is so"))[0] == "Where it is as it was: blue."


async def _space_is(database: Database, name: str) -> bool:
    return bool(await database.read(lambda c: c.execute("SELECT name = ? FROM vector_space", (name,)).get))
