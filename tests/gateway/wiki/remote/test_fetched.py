"""Pages of a wiki behind an API: cached across restarts, searched by meaning, counted in metrics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.base.errors import HearthError, ModelUnavailableError, NotFoundError
from gateway.base.supervised import Supervision
from gateway.config.settings import WikiSettings
from gateway.store.db import Database
from gateway.store.vectors import FETCHED
from gateway.store.wiki import fetched_pages
from gateway.store.wiki import vectors as wiki_vectors
from gateway.telemetry.metrics import Metrics
from gateway.vectors.indexer import Indexer
from gateway.vectors.queries import Queries
from gateway.wiki.remote import client as client_module
from gateway.wiki.remote.mediawiki import MediaWiki
from gateway.wiki.search.vectors import Meaning, WikiPages
from tests.gateway.vectors.words import WordEmbedder
from tests.gateway.wiki.remote.api_server import ApiServer, failed, reply, serving
from tests.waiting import until

TEXTS = {
    "Car": "<p>A car drives on a road.</p><h2 id='E'>Engine</h2><p>Petrol burns and turns wheels.</p>",
    "Boat": "<p>A boat floats on water.</p>",
    "Plane": "<p>A plane flies in the air.</p>",
}


class Wiki(ApiServer):
    """A wiki with the three pages; a search finds those with the word in their titles."""

    revisions: dict[str, int]

    def answer(self, asked: dict[str, str]) -> Any:
        if asked["action"] == "parse":
            title = asked["page"]
            text = TEXTS.get(title, f"<p>{title} has a text.</p>")
            return {"parse": {"title": title, "revid": self.revisions.get(title, 7), "text": text}}
        if "titles" in asked:
            found = asked["titles"].split("|")
        elif "srsearch" in asked:
            return {"query": {"searchinfo": {"totalhits": 0}, "search": []}}
        else:
            words = asked.get("gsrsearch", asked.get("gpssearch", "")).casefold().split()
            found = [title for title in TEXTS if title.casefold() in words]
        pages = [self.page(title, lastrevid=self.revisions.get(title, 7)) for title in found]
        return {"query": {"pages": pages}} if pages else {"batchcomplete": True}


@pytest.fixture
async def server() -> AsyncIterator[Wiki]:
    async with serving(made=Wiki()) as api:
        assert isinstance(api, Wiki)
        api.revisions = {}
        yield api


@pytest.fixture(autouse=True)
def short_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "_FIRST_BACKOFF", 0.01)


Open = Callable[..., Any]


@pytest.fixture
async def opened(server: Wiki, database: Database) -> AsyncIterator[Open]:
    """Opens clients with one database, as after a restart, and closes them at the end."""
    made: list[MediaWiki] = []

    async def open_one(api_url: str = "", meaning: Meaning | None = None, **values: Any) -> MediaWiki:
        settings = WikiSettings(api_url=api_url or server.api_url, fetch_timeout_seconds=30, **values)
        made.append(MediaWiki(settings, database, meaning))
        await made[-1].open()
        return made[-1]

    yield open_one
    for wiki in made:
        await wiki.close()


def parsed(server: ApiServer) -> list[str]:
    """Pages that were fetched, in order."""
    return [
        request.parameters["page"] for request in server.requests if request.parameters["action"] == "parse"
    ]


async def test_pages_are_kept_over_a_restart(server: Wiki, opened: Open) -> None:
    first = await (await opened()).fetch("Car")
    again = await opened()
    assert await again.fetch("Car") == first
    assert parsed(server) == ["Car"], "the second source asked for the revision alone"
    health = await again.health()
    assert (health.pages, health.cache_hits, health.cache_bytes > 50) == (1, 1, True)


async def test_another_revision_is_fetched_and_takes_the_place(server: Wiki, opened: Open) -> None:
    await (await opened()).fetch("Car")
    server.revisions["Car"] = 8
    wiki = await opened()
    assert (await wiki.fetch("Car")).revision == 8
    assert parsed(server) == ["Car", "Car"]
    assert (await wiki.health()).pages == 1


async def test_the_pages_used_last_stay(server: Wiki, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetched_pages, "_TOUCH_SECONDS", 0.0)
    one = await opened()
    await one.fetch("Page 1")
    size = (await one.health()).cache_bytes
    wiki = await opened(cache_bytes=size * 4 + size // 2)
    for title in ("Page 1", "Page 2", "Page 3", "Page 4", "Page 1", "Page 5"):
        await wiki.fetch(title)
    assert ((await wiki.health()).pages, (await wiki.health()).cache_bytes) == (4, size * 4)
    asked = len(parsed(server))
    for title in ("Page 1", "Page 3", "Page 4", "Page 5"):
        await wiki.fetch(title)
    assert len(parsed(server)) == asked
    await wiki.fetch("Page 2")
    assert len(parsed(server)) == asked + 1


async def test_a_page_too_large_for_the_cache_is_only_read(
    server: Wiki, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TEXTS, "Long", "<p>word </p>" * 500)
    wiki = await opened(cache_bytes=4000)
    assert len((await wiki.fetch("Long")).sections[0].text) > 2000
    assert (await wiki.health()).pages == 0
    none = await opened(cache_bytes=0)
    await none.fetch("Car")
    await none.fetch("Car")
    assert parsed(server) == ["Long", "Car", "Car"]


async def test_another_wiki_gets_none_of_it(server: Wiki, opened: Open) -> None:
    await (await opened()).fetch("Car")
    async with serving() as other:
        wiki = await opened(other.api_url)
        assert (await wiki.health()).pages == 0
        assert (await wiki.fetch("Car")).sections[0].text == "Text."
    assert (await (await opened()).health()).pages == 0


async def test_what_another_version_read_is_read_again(
    server: Wiki, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await opened()).fetch("Car")
    monkeypatch.setattr("gateway.wiki.remote.page_cache.VERSION", 99)
    await (await opened()).fetch("Car")
    assert parsed(server) == ["Car", "Car"]


async def test_a_page_that_is_gone_is_forgotten(server: Wiki, opened: Open) -> None:
    await (await opened()).fetch("Car")
    wiki = await opened()
    server.replies = [reply({"query": {"pages": [{"title": "Car", "ns": 0, "missing": True}]}})]
    with pytest.raises(NotFoundError):
        await wiki.fetch("Car")
    assert (await wiki.health()).pages == 0


async def test_a_small_first_letter_may_be_another_page(server: Wiki, opened: Open) -> None:
    """Wiktionaries have pages that differ only in the case of the first letter."""
    wiki = await opened()
    assert [(await wiki.fetch(title)).title for title in ("Set", "set", "Set", "set")] == ["Set", "set"] * 2
    assert parsed(server) == ["Set", "set"]


async def test_a_database_that_fails_costs_requests_and_no_answers(
    server: Wiki, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiki = await opened()

    async def full(fn: object) -> None:
        raise HearthError("the disk is full")

    monkeypatch.setattr(wiki.cache._database, "write", full)
    for _ in range(2):
        assert (await wiki.fetch("Boat")).title == "Boat"
    assert parsed(server) == ["Boat", "Boat"]


# ------------------------------------------------------------------------------------- by meaning


class Searched:
    """A client whose pages are embedded after they were fetched."""

    def __init__(self, wiki: MediaWiki, embedder: WordEmbedder, queries: Queries, database: Database) -> None:
        self.wiki = wiki
        self.embedder = embedder
        self.queries = queries
        self._database = database

    async def know(self, *titles: str) -> None:
        """Fetch pages and wait for their vectors."""
        for title in titles:
            await self.wiki.fetch(title)

        async def done() -> bool:
            made, _, total = await self._database.read(lambda c: wiki_vectors.count_embedded(c, FETCHED, 1))
            return made == total

        await until(done)

    async def titles(self, term: str) -> list[str]:
        return [ref.title for ref in (await self.wiki.search_text(term, 5)).refs]


Search = Callable[..., Any]


@pytest.fixture
async def searching(server: Wiki, database: Database) -> AsyncIterator[Search]:
    closing: list[Any] = []

    async def make(mode: str) -> Searched:
        embedder = WordEmbedder()
        indexer = Indexer(database, embedder, [WikiPages(FETCHED)], poll_seconds=30)
        queries = Queries(
            embedder, dimensions=None, min_similarity=0.2, timeout_seconds=5, on_stale=lambda: None
        )
        settings = WikiSettings(api_url=server.api_url, fetch_timeout_seconds=30, search=mode)  # type: ignore[arg-type]
        wiki = MediaWiki(settings, database, Meaning(database, queries, FETCHED), indexer.wake)
        await wiki.open()
        indexer.start(Supervision())
        closing.extend([indexer, queries, wiki])
        return Searched(wiki, embedder, queries, database)

    yield make
    for each in closing:
        await each.close()


async def test_fetched_pages_are_found_by_meaning_beside_the_wikis_search(searching: Search) -> None:
    both = await searching("both")
    assert await both.titles("Plane") == ["Plane"], "nothing is kept yet: the wiki's own search alone"
    assert (await both.wiki.search_text("Plane", 5)).problem is None
    await both.know("Car", "Boat")
    assert tuple(
        text for text in sorted(both.embedder.embedded) if text.startswith(("A boat", "Petrol"))
    ) == ("A boat floats on water.", "Petrol burns and turns wheels."), "each section is a passage of its own"
    assert set(await both.titles("petrol burns wheels Plane")) == {"Car", "Plane"}, "one of each ranking"
    assert await both.titles("floats on water") == ["Boat"], "no title has these words"


async def test_each_ranking_works_alone(server: Wiki, searching: Search) -> None:
    by_vectors = await searching("vectors")
    await by_vectors.know("Car", "Boat")
    asked = len(server.requests)
    assert (await by_vectors.titles("turns wheels"))[0] == "Car"
    assert len(server.requests) == asked
    by_words = await searching("text")
    calls = len(by_words.embedder.calls)
    assert await by_words.titles("turns wheels") == []
    assert await by_words.titles("Boat") == ["Boat"]
    assert len(by_words.embedder.calls) == calls


async def test_a_new_revision_gets_new_vectors(
    server: Wiki, searching: Search, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_vectors = await searching("vectors")
    await by_vectors.know("Boat")
    monkeypatch.setitem(TEXTS, "Boat", "<p>Submarines dive below.</p>")
    server.revisions["Boat"] = 8
    by_vectors.wiki._infos._infos.clear()
    await by_vectors.know("Boat")
    assert await by_vectors.titles("Submarines dive") == ["Boat"]
    assert await by_vectors.titles("floats water") == []


async def test_without_the_model_words_must_do_and_it_is_told(searching: Search) -> None:
    both = await searching("both")
    await both.know("Car")
    both.embedder.error = ModelUnavailableError("the model is gone")
    found = await both.wiki.search_text("Car", 5)
    assert [ref.title for ref in found.refs] == ["Car"]
    assert found.problem == "searched by words alone: the model is gone"


# ---------------------------------------------------------------------- search engines and operators

# What CirrusSearch adds to a hit and to a reply; none of it may be in the way.
CIRRUS = {
    "snippet": "a <span class='searchmatch'>boat</span>",
    "titlesnippet": "",
    "sectiontitle": "Top",
    "wordcount": 3,
    "size": 20,
    "timestamp": "2026-01-01T00:00:00Z",
    "extensiondata": {"wikibase": {}},
}


async def test_what_the_search_engine_suggests_is_searched(server: Wiki, opened: Open) -> None:
    wiki = await opened()
    nothing = reply({"batchcomplete": True, "warnings": {"search": {"warnings": "unused"}}})
    meant = {"totalhits": 0, "suggestion": "Boat -x|y", "suggestionsnippet": "<em>Boat</em>"}
    server.replies = [nothing, reply({"query": {"searchinfo": meant, "search": []}})]
    server.replies += [
        reply({"query": {"pages": [server.page("Boat") | CIRRUS]}, "continue": {"sroffset": 1}})
    ]
    assert [ref.title for ref in (await wiki.search_text("Baot", 3)).refs] == ["Boat"]
    first, suggestion, second = (request.parameters for request in server.requests)
    assert first["gsrsearch"] == suggestion["srsearch"] == "baot"
    assert (suggestion["list"], suggestion["srinfo"], suggestion["srlimit"]) == ("search", "suggestion", "1")
    assert second["gsrsearch"] == "boat x y", "a suggestion is words, too: no operators"


async def test_a_suggestion_that_helps_nobody_ends_the_search(server: Wiki, opened: Open) -> None:
    nothing = reply({"batchcomplete": True})
    for suggested in ("", "baot", "Baot!"):
        server.requests.clear()
        server.replies = [nothing, reply({"query": {"searchinfo": {"suggestion": suggested}}})]
        assert (await (await opened()).search_text("baot", 3)).refs == []
        assert len(server.requests) == 2


@pytest.mark.parametrize("code", ["cirrussearch-too-busy-error", "cirrussearch-backend-error"])
async def test_a_busy_search_engine_is_asked_again(server: Wiki, opened: Open, code: str) -> None:
    wiki = await opened()
    server.replies = [failed(code)]
    assert [ref.title for ref in (await wiki.search_text("boat", 3)).refs] == ["Boat"]
    assert (await wiki.health()).retries == 1


async def test_requests_retries_errors_and_the_cache_are_counted(server: Wiki, opened: Open) -> None:
    wiki, measured = await opened(), Metrics()
    measured.scrape(wiki.metrics)

    def value(name: str) -> float:
        lines = measured.render().decode().splitlines()
        return float(next(line for line in lines if line.startswith(name + " ")).rpartition(" ")[2])

    assert value('wiki_errors_total{kind="overload"}') == 0, "every kind is there from the start"
    server.replies = [failed("internal_api_error_x")]
    await wiki.fetch("Car")
    await wiki.fetch("Car")
    server.replies = [failed("unknown_action")]
    with pytest.raises(HearthError):
        await wiki.search_text("x", 3)
    server.replies = [reply(b"", 302, Location="http://other.test/")]
    with pytest.raises(HearthError):
        await wiki.search_text("x", 3)
    assert value("wiki_request_seconds_count") == 4
    assert value('wiki_retries_total{kind="overload"}') == 1
    assert [value(f'wiki_errors_total{{kind="{kind}"}}') for kind in ("refused", "elsewhere", "timeout")] == [
        1,
        1,
        0,
    ]
    assert (value("wiki_cache_hits_total"), value("wiki_cache_misses_total")) == (1, 1)
    assert (value("wiki_cached_pages"), value("wiki_paused_seconds")) == (1, 0)
    assert value("wiki_cached_bytes") > 50


def test_docs_name_every_metric() -> None:
    text = (Path(__file__).parents[4] / "docs" / "operations.md").read_text()
    for name in ("wiki_request_seconds", "wiki_errors_total", "wiki_retries_total", "wiki_cache_hits_total"):
        assert name in text
