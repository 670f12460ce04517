"""Pages found by words, by vectors, and by both."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import ModelUnavailableError
from gateway.base.ranking import K_SEARCH
from gateway.base.supervised import Supervision
from gateway.cli.common.files import opened_database
from gateway.config.settings import WikiSettings
from gateway.store.backup import copy_database
from gateway.store.db import Database
from gateway.store.vectors import IMPORTED, use_extension
from gateway.store.wiki import pages as store
from gateway.store.wiki import vectors as wiki_vectors
from gateway.wiki.ingest import prepare, put
from gateway.wiki.local import LocalWiki
from gateway.wiki.search.vectors import MOST_CHARACTERS, Meaning, WikiPages, cut, passages
from gateway.wiki.source import Section
from tests.gateway.vectors.words import WordSearch
from tests.waiting import until

PAGES = {
    "Car": "A car drives on a road.\n== Engine ==\nPetrol burns in the engine and turns wheels.",
    "Boat": "A boat floats on water.",
    "Plane": "A plane flies in the air and has an engine.",
    "Mountain": "A mountain is high.",
    "Empty": "",
}
_revisions = itertools.count(1)


class Setup(WordSearch):
    """A wiki, its indexer, and what they work with."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, WikiPages(IMPORTED), poll_seconds=30)

    def wiki(self, search: Any = "both") -> LocalWiki:
        return LocalWiki(
            self.database, WikiSettings(search=search), Meaning(self.database, self.queries, IMPORTED)
        )

    async def put(self, **pages: str) -> None:
        def store_all(connection: apsw.Connection) -> None:
            for title, text in pages.items():
                put(connection, prepare(title, next(_revisions), text), "test")

        await self.database.write(store_all)

    async def index(self) -> None:
        """Look for new pages, and wait until they have their vectors."""
        self.indexer.wake()

        async def all_done() -> bool:
            done, _, total = await self.database.read(lambda c: wiki_vectors.count_embedded(c, IMPORTED, 1))
            gone = await self.database.read(
                lambda c: c.execute("SELECT count(*) FROM wiki_passages_gone").get
            )
            return done == total and not gone

        await until(all_done)

    async def stored(self) -> tuple[int, int]:
        """Passages, and vectors in sqlite-vec's own table."""

        def count(connection: apsw.Connection) -> tuple[int, int]:
            use_extension(connection)
            passages = connection.execute("SELECT count(*) FROM wiki_passages").get
            return passages, connection.execute("SELECT count(*) FROM wiki_vectors").get

        return await self.database.read(count)


@pytest.fixture
async def setup(database: Database) -> AsyncIterator[Setup]:
    made = Setup(database)
    await made.put(**PAGES)
    made.indexer.start(Supervision())
    await made.indexer.caught_up()
    yield made
    await made.indexer.close()
    await made.queries.close()


async def titles(wiki: LocalWiki, term: str, limit: int = 5) -> list[str]:
    return [ref.title for ref in (await wiki.search_text(term, limit)).refs]


async def test_the_same_text_is_nearest(setup: Setup) -> None:
    assert await setup.stored() == (5, 5)  # the two sections of Car, one of each other page, none of Empty
    wiki = setup.wiki("vectors")
    assert (await titles(wiki, "Petrol burns in the engine and turns wheels."))[0] == "Car"
    assert (await titles(wiki, "A boat floats on water."))[0] == "Boat"
    assert await titles(wiki, "zzz qqq") == [], "what is far away is no hit"
    assert await titles(wiki, "") == await titles(wiki, "  ") == await titles(wiki, "boat", 0) == []


@pytest.mark.parametrize("search", ["vectors", "both"])
async def test_a_hit_names_its_nearest_section(setup: Setup, search: str) -> None:
    wiki = setup.wiki(search)
    for term, section in (
        ("Petrol burns in the engine and turns wheels.", 1),
        ("A car drives on a road.", 0),
    ):
        first = (await wiki.search_text(term, 5)).refs[0]
        assert (first.title, first.section) == ("Car", section)
    assert [ref.section for ref in (await setup.wiki("text").search_text("car", 5)).refs] == [None]


async def test_each_mode_works_alone(setup: Setup) -> None:
    await setup.put(Ferry="A ship carries passengers over the sea.")  # has no vector yet
    by_words, by_vectors, both = (setup.wiki(mode) for mode in ("text", "vectors", "both"))
    asked = len(setup.embedder.calls)
    assert await titles(by_words, "ship") == ["Ferry"]
    assert len(setup.embedder.calls) == asked, "text alone asks no model"
    assert await titles(by_vectors, "ship") == []
    assert (await titles(both, "ship engine"))[:1] != []
    assert set(await titles(both, "ship engine")) == {"Ferry", "Car", "Plane"}


async def test_both_rankings_count(setup: Setup) -> None:
    """Pages that both find rank before pages that one finds."""
    await setup.put(One="engine " * 30 + "alpha beta gamma", Two="engine")
    await setup.index()
    ranked = (await setup.wiki("both").search_text("engine", 5)).refs
    assert {ref.title for ref in ranked} >= {"One", "Two"}
    assert [ref.score for ref in ranked] == sorted((ref.score for ref in ranked), reverse=True)
    assert all(0 < ref.score <= 2 / (1 + K_SEARCH) for ref in ranked)


async def test_copies_are_folded_across_both_rankings(setup: Setup) -> None:
    text = "A unicorn is an animal with one horn that lives in the forest and is seen by few people. " * 2
    await setup.put(Unicorn=text, Mirror=text)
    await setup.index()
    for mode in ("text", "vectors", "both"):
        found = await titles(setup.wiki(mode), "unicorn horn forest animal")
        assert len({"Unicorn", "Mirror"} & set(found)) == 1, mode


async def test_a_changed_page_gets_new_vectors_and_loses_the_old(setup: Setup) -> None:
    await setup.put(Boat="Submarines dive below the surface.")
    assert await titles(setup.wiki("vectors"), "A boat floats on water.") == [
        title for title in await titles(setup.wiki("vectors"), "A boat floats on water.") if title != "Boat"
    ], "the old vectors are found no more at once"
    await setup.index()
    assert await titles(setup.wiki("vectors"), "Submarines dive below the surface") == ["Boat"]
    assert await setup.stored() == (5, 5)
    embedded = setup.embedder.embedded
    assert embedded.count("A plane flies in the air and has an engine.") == 1, (
        "unchanged pages are left alone"
    )


async def test_a_deleted_page_leaves_nothing(setup: Setup) -> None:
    await setup.database.write(lambda c: store.delete_title(c, "Car"))
    assert "Car" not in await titles(setup.wiki(), "engine petrol wheels")
    await setup.index()
    assert await setup.stored() == (3, 3)


async def test_a_page_that_changes_while_it_is_embedded_is_not_mixed_up(
    setup: Setup, database: Database
) -> None:
    """Another page may even have its row id."""

    def race(connection: apsw.Connection) -> list[wiki_vectors.PendingPage]:
        put(connection, prepare("Race", 1, "old text"), "test")
        [pending] = wiki_vectors.pending_pages(connection, IMPORTED, 1, 0, 10)
        store.delete_title(connection, "Race")
        put(connection, prepare("Other", 1, "new text"), "test")
        [other] = wiki_vectors.pending_pages(connection, IMPORTED, 1, 0, 10)
        assert other.id == pending.id
        wiki_vectors.put_page_vectors(connection, IMPORTED, pending, 1, [0], [b"\0" * 512], None)
        return wiki_vectors.pending_pages(connection, IMPORTED, 1, 0, 10)

    assert [page.title for page in await database.write(race)] == ["Other"]


async def test_without_the_model_words_must_do(setup: Setup) -> None:
    setup.embedder.error = ModelUnavailableError("gone")
    found = await setup.wiki("both").search_text("petrol", 5)
    assert [ref.title for ref in found.refs] == ["Car"]
    assert found.problem == "searched by words alone: gone"
    assert (setup.queries.failures, setup.queries.problem) == (1, "gone")
    with pytest.raises(ModelUnavailableError, match="gone"):
        await titles(setup.wiki("vectors"), "petrol")


async def test_another_model_makes_all_vectors_again(setup: Setup) -> None:
    """No setting changed and no vector is missing: the first query notices."""
    before = len(setup.embedder.embedded)
    setup.embedder.space, setup.embedder.width = "other:64", 64
    found = await setup.wiki("vectors").search_text("A boat floats on water.", 5)
    assert found.refs == [] and "model changed" in (found.problem or "")

    async def found() -> bool:
        return (await titles(setup.wiki("vectors"), "A boat floats on water."))[:1] == ["Boat"]

    await until(found)
    await setup.index()
    assert await setup.stored() == (5, 5)
    assert len(setup.embedder.embedded) > before + 5


async def test_a_backup_has_the_vectors(setup: Setup, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    copy_database(setup.database.path, target, lambda *_: None)
    with opened_database(target) as copy:
        meaning = Meaning(copy, setup.queries, IMPORTED)
        assert await titles(
            LocalWiki(copy, WikiSettings(search="vectors"), meaning), "A boat floats on water.", 1
        ) == ["Boat"]


async def test_an_empty_index_asks_no_model(database: Database) -> None:
    setup = Setup(database)
    await setup.put(**PAGES)
    found = await setup.wiki("both").search_text("petrol", 5)
    assert [ref.title for ref in found.refs] == ["Car"]
    assert found.problem == "searched by words alone: no page has its vectors yet"
    assert setup.embedder.calls == []


def test_pages_are_told_with_title_and_heading(database: Database) -> None:
    document = database.write_sync(
        lambda c: put(c, prepare("Car", 1, PAGES["Car"]), "test") or WikiPages(IMPORTED).pending(c, -1, 5)  # type: ignore[func-returns-value]
    )[0]
    assert [(part.title, part.mark) for part in document.parts] == [("Car", 0), ("Car - Engine", 1)]


def test_import_and_deletion_need_no_extension(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an embedding model it is never loaded."""
    refuse: Callable[..., None] = lambda *_: pytest.fail("the extension was loaded")  # noqa: E731
    for module in ("gateway.store.vectors", "gateway.store.wiki.vectors"):
        monkeypatch.setattr(f"{module}.use_extension", refuse)
    database.write_sync(lambda c: put(c, prepare("Car", 1, "text"), "test"))
    database.write_sync(lambda c: put(c, prepare("Car", 2, "other"), "test"))
    database.write_sync(lambda c: store.delete_title(c, "Car"))


TEXT = st.text(st.sampled_from("ab c.\n日€"), max_size=5000) | st.text(max_size=300)


def section(text: str, heading: str = "") -> Section:
    return Section(heading, heading, 1, text)


@given(st.lists(TEXT, max_size=4))
def test_every_word_is_in_a_passage_and_none_is_too_long(texts: list[str]) -> None:
    made = passages("Page", [section(text) for text in texts])
    for index, text in enumerate(texts):
        mine = "".join("".join(piece.text.split()) for piece in made if piece.mark == index)
        assert mine == "".join(text.split())
    assert all(0 < len(piece.text) <= MOST_CHARACTERS + 2 for piece in made)
    assert [piece.mark for piece in made] == sorted(piece.mark for piece in made)


@given(TEXT, st.integers(2, 50))
def test_cuts_lose_nothing(text: str, size: int) -> None:
    parts = list(cut(text, size))
    assert "".join("".join(part.split()) for part in parts) == "".join(text.split())
    assert all(len(part) <= size for part in parts)


def test_paragraphs_stay_whole_and_sections_apart() -> None:
    first, second = ("One. " * 120).strip(), ("Two. " * 120).strip()
    sections = [section(f"{first}\n\nshort\n\n{second}"), section(""), section("end", "The end")]
    assert [(piece.mark, piece.title, piece.text) for piece in passages("Page", sections)] == [
        (0, "Page", f"{first}\n\nshort"),
        (0, "Page", second),
        (2, "Page - The end", "end"),
    ]


def test_long_text_is_cut_behind_lines_sentences_and_words() -> None:
    assert list(cut("aaaa bb\ncccc dddd", 10)) == ["aaaa bb", "cccc dddd"]
    assert list(cut("One two. Three four five", 12)) == ["One two.", "Three four", "five"]
    assert list(cut("x" * 25, 10)) == ["x" * 10, "x" * 10, "x" * 5]
