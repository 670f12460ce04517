"""The wiki in the local database."""

from __future__ import annotations

from urllib.parse import quote

import apsw

from gateway.base.errors import NotFoundError
from gateway.config.settings import WikiSettings
from gateway.store import fts
from gateway.store.db import Database
from gateway.store.wiki import pages as store
from gateway.store.wiki.search import sketch_of
from gateway.wiki.search.hybrid import HybridSearch
from gateway.wiki.search.texts import search_text
from gateway.wiki.search.titles import search_titles
from gateway.wiki.search.vectors import Meaning
from gateway.wiki.sites import UNKNOWN_ADDRESS, site_of, whole_site
from gateway.wiki.source import SECTIONS, Hits, Page, PageRef, Site, WikiHealth
from gateway.wiki.wikitext.extract import normal_title, plain_title

# MediaWiki leaves these unescaped in page URLs.
_SAFE_IN_URL = ";@$!*(),/~:"
_SPARE = 30


class LocalWiki:
    """A :class:`gateway.wiki.source.WikiSource` over the tables ``wiki_*``; searches by words without ``meaning``."""

    def __init__(
        self,
        database: Database,
        settings: WikiSettings,
        meaning: Meaning | None = None,
        fallback: str = UNKNOWN_ADDRESS,
    ) -> None:
        """``fallback`` is the ``page_url`` of pages whose wiki is not known."""
        self._database = database
        self._settings = settings
        self._fallback = fallback
        self._hybrid = HybridSearch(self._by_words, meaning, sketch_of, settings.search, spare=_SPARE)

    async def search_titles(self, term: str, limit: int) -> list[PageRef]:
        """Find pages by name: exact, redirect, prefix, words, names inside the term, substring, misspelling."""
        return await self._database.read(lambda connection: search_titles(connection, term, limit))

    async def search_text(self, term: str, limit: int) -> Hits:
        """Find pages by words, by meaning or by both rankings fused, as ``wiki.search`` says."""
        return await self._hybrid.search(term, limit)

    async def _by_words(self, term: str, limit: int) -> list[PageRef]:
        return await self._database.read(lambda connection: search_text(connection, term, limit))

    async def fetch(self, title: str) -> Page:
        """The page of that title, redirects followed. Raises NotFoundError, also for redirects in a circle."""
        row, site = await self._database.read(lambda connection: _find(connection, title))
        return Page(row.title, row.revision, self._url(row.title, site), SECTIONS.decode(row.sections))

    async def site(self) -> Site:
        """The names of the imported wikis, or that of the sample."""
        return await self._database.read(whole_site)

    async def subjects(self, limit: int) -> list[str]:
        """Titles of pages that the wiki says much about."""
        return await self._database.read(lambda connection: store.subjects(connection, limit))

    async def health(self) -> WikiHealth:
        pages = await self._database.read(store.count_pages)
        address = self._settings.page_url or (await self.site()).page_url
        return WikiHealth(source="local", status="ok", address=address, pages=pages)

    def _url(self, title: str, site: Site) -> str:
        """URL of the page: as `wiki.page_url` says, else on the wiki it was imported from, else at ``fallback``."""
        encoded = quote(title.replace(" ", "_"), safe=_SAFE_IN_URL)
        return (self._settings.page_url or site.page_url or self._fallback).replace("{title}", encoded)


def _find(connection: apsw.Connection, title: str) -> tuple[store.PageRow, Site]:
    names = store.names_by_key(connection, fts.title_key(title))
    plain = plain_title(title)
    wanted = plain if any(name.name == plain for name in names) else normal_title(title)
    resolved = store.resolve(connection, wanted)
    row = store.page(connection, resolved) if resolved is not None else None
    if row is None:
        if names:
            raise NotFoundError(f"the wiki's redirect `{title}` leads to no page")
        raise NotFoundError(f"the wiki has no page `{title}`")
    return row, site_of(connection, row.origin)
