"""The indexer makes missing vectors in any order of events."""

from __future__ import annotations

import asyncio

import apsw
import pytest

from gateway.base import supervised
from gateway.base.errors import HearthError, InvalidRequestError, ModelUnavailableError
from gateway.inference.embedding import EmbedCall, Embeddings
from gateway.store.db import Database
from gateway.store.vectors import Space, get_space
from gateway.vectors import indexer as module
from gateway.vectors.indexer import Group
from gateway.vectors.source import Count, Document, EmbeddedText, Vectors
from tests.gateway.vectors.conftest import Listed, MakeIndexer
from tests.gateway.vectors.words import WordEmbedder, vector_of
from tests.waiting import until


async def test_everything_gets_its_vectors_once(make_indexer: MakeIndexer, embedder: WordEmbedder) -> None:
    source = Listed({n: [f"text {n} {part}" for part in range(n % 4)] for n in range(50)})
    indexer = make_indexer(source)
    await indexer.caught_up()
    assert source.made.keys() == source.texts.keys()
    assert source.made[7].vectors == [vector_of(f" text 7 {part}") for part in range(3)]
    assert source.made[7].marks == [0, 1, 2]
    assert sorted(embedder.embedded) == sorted(text for texts in source.texts.values() for text in texts)
    assert {call.lane for call in embedder.calls} == {"background"}
    assert indexer.health().counts == {"listed": Count(50, 0, 50)}
    assert (indexer.health().state, indexer.health().problem) == ("idle", None)


async def test_what_comes_later_is_found_also_with_smaller_numbers(make_indexer: MakeIndexer) -> None:
    source = Listed({5: ["five"]})
    indexer = make_indexer(source)
    await indexer.caught_up()
    source.texts |= {1: ["one"], 9: ["nine"]}
    await until(lambda: len(source.made) == 3)
    await until(lambda: indexer.health().counts == {"listed": Count(3, 0, 3)})


async def test_nothing_to_do_starts_no_model(make_indexer: MakeIndexer, embedder: WordEmbedder) -> None:
    source = Listed({})
    await make_indexer(source).caught_up()
    await until(lambda: source.tidied > 6)
    assert embedder.calls == []


async def test_a_failing_model_is_tried_again_later(
    make_indexer: MakeIndexer, embedder: WordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "_FIRST_WAIT_SECONDS", 0.01)
    embedder.error = ModelUnavailableError("no memory", retry_after=0.01)
    source = Listed({1: ["one"]})
    indexer = make_indexer(source)
    await until(lambda: indexer.health().problem == "no memory")
    assert (indexer.health().state, source.made) == ("waiting", {})
    embedder.error = None
    await until(lambda: 1 in source.made)
    await until(lambda: indexer.health().problem is None)


async def test_an_unexpected_error_is_reported_and_survived(
    make_indexer: MakeIndexer, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Torn(Listed):
        torn = True

        def tidy(self, connection: apsw.Connection) -> bool:
            if self.torn:
                raise KeyError("secret")
            return super().tidy(connection)

    monkeypatch.setattr(supervised, "_FIRST_WAIT_SECONDS", 0.05)
    source = Torn({1: ["one"]})
    indexer = make_indexer(source)
    await indexer.caught_up()
    assert indexer.health().state == "waiting"
    assert indexer.health().problem == "an internal error (KeyError); the server's log has it"
    source.torn = False
    await until(lambda: 1 in source.made)
    await until(lambda: (indexer.health().state, indexer.health().problem) == ("idle", None))


async def test_settings_that_no_text_can_meet_are_no_fault_of_the_texts(
    make_indexer: MakeIndexer, embedder: WordEmbedder
) -> None:
    embedder.error = InvalidRequestError("`dimensions` is 9000", param="dimensions")
    source = Listed({1: ["one"]})
    indexer = make_indexer(source)
    await until(lambda: indexer.health().problem == "`dimensions` is 9000")
    assert source.made == {}


async def test_a_text_without_a_vector_is_left_out_and_counted(
    make_indexer: MakeIndexer, database: Database
) -> None:
    embedder_texts = {n: [f"text {n}"] for n in range(20)} | {7: ["fine", "poison \0"]}
    source = Listed(embedder_texts)
    indexer = make_indexer(source)
    await indexer.caught_up()
    assert source.made[7].vectors == []
    assert source.made[7].problem is not None
    assert all(len(source.made[n].vectors) == 1 for n in range(20) if n != 7)
    await until(lambda: indexer.health().counts == {"listed": Count(20, 1, 20)})


async def test_a_long_text_is_cut_until_it_fits(make_indexer: MakeIndexer) -> None:
    words = [f"w{n}" for n in range(1500)]
    source = Listed({1: ["short", " ".join(words), "end"]})
    await make_indexer(source).caught_up()
    made = source.made[1]
    assert made.problem is None
    assert made.marks == [0, *[1] * (len(made.marks) - 2), 2]
    assert len(made.marks) >= 6  # four times as long as fits, and cut in halves


async def test_another_model_starts_over(
    make_indexer: MakeIndexer, embedder: WordEmbedder, database: Database
) -> None:
    source = Listed({1: ["one"]})
    indexer = make_indexer(source)
    await indexer.caught_up()
    assert (await database.read(get_space)).name == "words:128"  # type: ignore[union-attr]
    embedder.space, embedder.identity, embedder.width = "other:64", "other.gguf", 64
    indexer.wake()
    await until(lambda: len(embedder.calls) == 2)

    async def adopted() -> bool:
        found = await database.read(get_space)
        return found == Space("other:64", 64, "other.gguf")

    await until(adopted)


async def test_a_copied_file_is_the_same_model(
    make_indexer: MakeIndexer, embedder: WordEmbedder, database: Database
) -> None:
    """Another path or time but the same vectors: the model is asked once, and nothing is made again."""
    source = Listed({1: ["one"]})
    indexer = make_indexer(source)
    await indexer.caught_up()
    embedder.identity = "copy.gguf"
    indexer.wake()
    await until(lambda: len(embedder.calls) == 2)

    async def adopted() -> bool:
        found = await database.read(get_space)
        return found is not None and found.identity == "copy.gguf"

    await until(adopted)
    assert len(embedder.calls) == 2


async def test_it_lets_answers_go_first(make_indexer: MakeIndexer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LOOK_SECONDS", 0.01)
    busy = True
    source = Listed({1: ["one"]})
    make_indexer(source, busy=lambda: busy)
    await asyncio.sleep(0.1)
    assert source.made == {}
    busy = False
    await until(lambda: 1 in source.made)


async def test_it_does_not_wait_forever(make_indexer: MakeIndexer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_YIELD_SECONDS", 0.05)
    source = Listed({1: ["one"]})
    await make_indexer(source, busy=lambda: True).caught_up()
    assert 1 in source.made


# --------------------------------------------------------------------------- groups


async def test_a_model_that_changes_within_a_group_starts_it_over() -> None:
    embedder = WordEmbedder()

    async def embed(parts: list[EmbeddedText]) -> Embeddings:
        if len(embedder.calls) == 1:
            embedder.space, embedder.width = "other", 64
        return await embedder.embed(EmbedCall([part.text for part in parts]))

    texts = ["a", *["b"] * 20]
    group = Group([Document(1, [EmbeddedText(text) for text in texts], None)], embed)
    [(_, made)] = await group.run()
    assert (group.space, group.dimensions) == ("other", 64)
    assert made.vectors == [vector_of(f" {text}", 64) for text in texts]


@pytest.mark.parametrize(
    ("error", "continues"),
    [
        (HearthError("a text without a direction"), True),
        (InvalidRequestError("text 0 is empty", param="texts"), True),
        (InvalidRequestError("too many", param="dimensions"), False),
        (ModelUnavailableError("crashed", retry_after=1.0), False),
        (ModelUnavailableError("no such file"), False),
    ],
)
async def test_only_a_fault_of_the_text_skips_the_document(error: HearthError, continues: bool) -> None:
    async def embed(parts: list[EmbeddedText]) -> Embeddings:
        raise error

    group = Group([Document(1, [EmbeddedText("a")], None)], embed)
    if continues:
        [(_, made)] = await group.run()
        assert made == Vectors([], [], error.message)
    else:
        with pytest.raises(type(error)):
            await group.run()


def test_halves_end() -> None:
    parts = [EmbeddedText("word " * 300, "title", 3)]
    while any(len(part.text) > 1 for part in parts):
        assert {(part.title, part.mark) for part in parts} == {("title", 3)}
        assert "".join("".join(part.text.split()) for part in parts) == "word" * 300
        parts = [half for part in parts for half in (part.halves() if len(part.text) > 1 else [part])]
