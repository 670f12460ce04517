"""The wiki in the local database, searched with SQLite's full-text index, by vectors, or by both."""

from __future__ import annotations

from urllib.parse import quote

import apsw
import msgspec

from gateway.aio import side_by_side
from gateway.errors import HearthError, NotFoundError
from gateway.ranking import fuse
from gateway.settings import WikiSettings
from gateway.store import fts
from gateway.store import wiki as store
from gateway.store.db import Database
from gateway.store.wiki_search import sketch_of
from gateway.wiki.extract import normal_title
from gateway.wiki.sketch import Texts
from gateway.wiki.source import Page, PageRef, Section, WikiHealth
from gateway.wiki.texts import search_text
from gateway.wiki.titles import search_titles
from gateway.wiki.vectors import Meaning

# Left as they are in page addresses, as MediaWiki does.
_SAFE_IN_URL = ";@$!*(),/~:"
# Pages of each ranking besides those that are wanted: one that is second in both may be first in all.
_SPARE = 30


class LocalWiki:
    """A :class:`gateway.wiki.source.WikiSource` over the tables ``wiki_*``; without ``meaning`` by words alone."""

    def __init__(self, database: Database, settings: WikiSettings, meaning: Meaning | None = None) -> None:
        self._database = database
        self._settings = settings
        self._meaning = meaning

    async def search_titles(self, term: str, limit: int) -> list[PageRef]:
        """Pages by name: exact, redirect, prefix, words, names inside the term, substring, misspelling."""
        return await self._database.read(lambda connection: search_titles(connection, term, limit))

    async def search_text(self, term: str, limit: int) -> list[PageRef]:
        """Pages by words, by meaning, or by both rankings fused, as ``wiki.search`` says; no copy of one twice.

        By both, what has no vector in time is searched by words alone.
        """
        if self._meaning is None or self._settings.search == "text":
            return await self._by_words(term, limit)
        depth = limit + _SPARE
        if self._settings.search == "vectors":
            rankings = [await self._meaning.search(term, depth)]
        else:
            rankings = await side_by_side([self._by_words(term, depth), self._by_meaning(term, depth)])
        fused = fuse([[ref.title for ref in ranking] for ranking in rankings])
        return await self._database.read(lambda connection: _unlike(connection, fused, limit))

    async def _by_words(self, term: str, limit: int) -> list[PageRef]:
        return await self._database.read(lambda connection: search_text(connection, term, limit))

    async def _by_meaning(self, term: str, limit: int) -> list[PageRef]:
        assert self._meaning is not None, "the caller has looked"
        try:
            return await self._meaning.search(term, limit)
        except HearthError:  # the words alone must do; the queries have reported it
            return []

    async def fetch(self, title: str) -> Page:
        """The page of that title, redirects followed. Raises NotFoundError, also for redirects in a circle."""
        row = await self._database.read(lambda connection: _find(connection, title))
        sections = msgspec.json.decode(row.sections, type=list[Section])
        return Page(row.title, row.revision, self.url(row.title), sections)

    async def health(self) -> WikiHealth:
        """Pages in the store."""
        pages = await self.count_pages()
        return WikiHealth(source="local", status="ok", address=self._settings.page_url, pages=pages)

    async def count_pages(self) -> int:
        """Pages in the store, redirects not counted."""
        return await self._database.read(store.count_pages)

    def url(self, title: str) -> str:
        """Address of the page on the wiki it came from."""
        encoded = quote(title.replace(" ", "_"), safe=_SAFE_IN_URL)
        return self._settings.page_url.replace("{title}", encoded)


def _unlike(connection: apsw.Connection, ranked: list[tuple[str, float]], limit: int) -> list[PageRef]:
    """The best pages, of near-copies the first one."""
    texts = Texts()
    found: list[PageRef] = []
    for title, score in ranked:
        if len(found) == limit:
            break
        if texts.add(sketch_of(connection, title)):
            found.append(PageRef(title, score))
    return found


def _find(connection: apsw.Connection, title: str) -> store.PageRow:
    wanted = normal_title(title)
    resolved = store.resolve(connection, wanted)
    row = store.page(connection, resolved) if resolved is not None else None
    if row is None:
        if store.names_by_key(connection, fts.title_key(title)):
            raise NotFoundError(f"the wiki's redirect `{title}` leads to no page")
        raise NotFoundError(f"the wiki has no page `{title}`")
    return row
