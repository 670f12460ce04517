"""A MediaWiki on another machine, through its API: a :class:`gateway.wiki.source.WikiSource`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import httpx2

from gateway.base.aio import side_by_side
from gateway.base.errors import NotFoundError
from gateway.config.settings import WikiSettings
from gateway.store import fts
from gateway.store.db import Database
from gateway.store.wiki.fetched_pages import fetched_sketch
from gateway.wiki.html.page import extract_html
from gateway.wiki.remote.api import Api, ApiError
from gateway.wiki.remote.page_cache import PageCache, PageInfoCache
from gateway.wiki.remote.ranking import STEP, best, clean, falling, named_first, search_words
from gateway.wiki.remote.record import WikiCollector
from gateway.wiki.remote.trouble import WikiReplyError
from gateway.wiki.remote.values import PageInfo, PageQueryReply
from gateway.wiki.search.hybrid import HybridSearch
from gateway.wiki.search.term_names import LONGEST_TITLE, names_in
from gateway.wiki.search.vectors import Meaning
from gateway.wiki.source import Hits, Page, PageRef, WikiHealth
from gateway.wiki.wikitext.extract import plain_title

# How sure each kind of title match is; a hit's score falls a little with its place, never to the next kind's.
_EXACT, _PREFIX, _WORDS, _CONTAINED = 1.0, 0.9, 0.8, 0.7
# Redirects fold into their pages, so more are asked for than are wanted.
_MORE = 2
_MOST_HITS = 50  # the API's own limit for anybody
_RANKED = 10
_WORDS_ALONE = 3
# Pages of each ranking besides those that are wanted, when words and meaning are fused.
_SPARE = 12


class MediaWiki:
    """Searches and fetches pages. Every method raises WikiUnavailableError and WikiReplyError.

    Pages are kept in ``database``, if there is one, and then found by ``meaning`` too; ``on_new`` is called when there
    are other ones.
    """

    def __init__(
        self,
        settings: WikiSettings,
        database: Database | None = None,
        meaning: Meaning | None = None,
        on_new: Callable[[], None] = lambda: None,
    ) -> None:
        self.api = Api(settings)
        self.cache: PageCache | None = None
        self._hybrid: HybridSearch | None = None
        if database is not None and settings.cache_bytes:
            self.cache = PageCache(database, self.api.client.address, settings.cache_bytes, on_new)
            if meaning is not None:
                self._hybrid = HybridSearch(database, self._by_words, meaning, fetched_sketch, spare=_SPARE)
        self._told = PageInfoCache()
        self._mode = settings.search
        self._namespaces = frozenset(settings.namespaces)
        self._joined = "|".join(str(number) for number in sorted(self._namespaces))
        self._title_search = True  # until the wiki's search engine says that it has none

    async def open(self) -> None:
        """Look at what is kept of the wiki. Raises HearthError when the database fails."""
        if self.cache is not None:
            await self.cache.open()

    async def search_titles(self, term: str, limit: int) -> list[PageRef]:
        """Pages by name: exact, redirect, prefix, names inside the term, words of the title."""
        term = clean(term)
        if limit < 1 or not term:
            return []
        found = await side_by_side((self._named(term), self._by_prefix(term, limit)))
        scored = [each for some in found for each in some]
        if len({info.title for info, score in scored if score > _CONTAINED}) < limit:
            scored += falling(await self._by_title_words(term, limit), _WORDS)
        return best(scored, limit)

    async def search_text(self, term: str, limit: int) -> Hits:
        """Pages by words through the wiki's search engine, and kept pages by meaning, as ``wiki.search`` says."""
        if self._hybrid is None:
            return Hits(await self._by_words(term, limit))
        return await self._hybrid.search(term, limit, self._mode)

    async def fetch(self, title: str) -> Page:
        """The page of that title, redirects followed. Raises NotFoundError, also for other namespaces' pages."""
        try:
            info = self._told.get(plain_title(title)) or await self._info(title)
            if info.title != plain_title(title):
                await self._drop(title)  # a redirect now, or never a page's own title
            return await self._kept(info) or await self._parsed(info)
        except NotFoundError:
            await self._drop(title)
            raise

    async def _kept(self, info: PageInfo) -> Page | None:
        return await self.cache.get(info.title, info.lastrevid) if self.cache is not None else None

    async def _parsed(self, info: PageInfo) -> Page:
        parsed = await self.api.parse(info.title)
        # Takes a second for the longest pages; other requests go on meanwhile.
        sections = await asyncio.to_thread(extract_html, parsed.text)
        page = Page(parsed.title, parsed.revid, info.canonicalurl, sections)
        if self.cache is not None:
            await self.cache.put(page)
        return page

    async def _drop(self, title: str) -> None:
        if self.cache is not None:
            await self.cache.drop(plain_title(title))

    async def _by_words(self, term: str, limit: int) -> list[PageRef]:
        """Pages with all words of the term; when there are none, what the search engine thinks was meant, then pages
        with some of the words, most of them first."""
        words = search_words(term)
        if limit < 1 or not words:
            return []
        infos = await self._search("text", " ".join(words), max(limit, _RANKED))
        if infos:
            return best(falling(named_first(infos, words), 1.0), limit)
        alone = sorted(words, key=len, reverse=True)[:_WORDS_ALONE] if len(words) > 1 else []
        meant, *found = await side_by_side(
            [self._meant(words, limit), *(self._search("text", word, limit) for word in alone)]
        )
        scores = {info.title: 1.0 + score for info, score in falling(meant, 1.0)}
        for infos in found:
            for info, score in falling(infos, 1.0):
                scores[info.title] = scores.get(info.title, 0.0) + score / len(alone) / 2
        ranked = sorted(scores.items(), key=lambda item: -item[1])
        return [PageRef(title, score) for title, score in ranked[:limit]]

    async def _meant(self, words: list[str], limit: int) -> list[PageInfo]:
        """Pages by the words that the search engine suggests instead; CirrusSearch does for misspelled ones."""
        suggested = search_words(await self.api.suggestion(" ".join(words), self._joined))
        if not suggested or suggested == words:
            return []
        return named_first(await self._search("text", " ".join(suggested), limit), suggested)

    async def health(self) -> WikiHealth:
        """How the requests went so far; makes none."""
        record, address = self.api.record, self.api.client.address
        return WikiHealth(
            source="api",
            status="failing" if record.problem else "ok" if record.requests else "unused",
            address=address,
            pages=self.cache.pages if self.cache is not None else 0,
            requests=record.requests,
            retries=record.retries.total(),
            failures=record.failures.total(),
            cache_hits=self.cache.hits if self.cache is not None else 0,
            cache_bytes=self.cache.bytes if self.cache is not None else 0,
            last_reply_seconds=record.last_reply_seconds,
            paused_seconds=self.api.client.paused,
            problem=record.problem,
        )

    def collector(self) -> WikiCollector:
        """The same as metrics."""
        return WikiCollector(self.api.record, self.cache, lambda: self.api.client.paused)

    async def close(self) -> None:
        """Close all connections."""
        await self.api.close()

    async def _info(self, title: str) -> PageInfo:
        if not title.strip() or "|" in title:
            raise NotFoundError(f"the wiki has no page `{title}`")
        found = self._readable(await self.api.query({"titles": title}))
        if not found:
            raise NotFoundError(f"the wiki has no page `{title}`")
        return found[0]

    async def _named(self, term: str) -> list[tuple[PageInfo, float]]:
        """Pages whose name, or a redirect's to them, is the term or stands in it."""
        names = names_in(term)
        if not names:
            return []
        found = await self.api.query({"titles": "|".join(names)})
        by_title = {info.title: info for info in self._readable(found)}
        scored = []
        for place, name in enumerate(names):
            info = by_title.get(_resolved(name, found))
            if info is not None:
                exact = fts.title_key(name) == fts.title_key(term)
                scored.append((info, _EXACT if exact else _CONTAINED - place * STEP))
        return scored

    async def _by_prefix(self, term: str, limit: int) -> list[tuple[PageInfo, float]]:
        if len(term.encode("utf-8", "replace")) > LONGEST_TITLE:
            return []
        asked = {"generator": "prefixsearch", "gpssearch": term, "gpslimit": _hits(limit)}
        infos = self._ordered(await self.api.query({**asked, "gpsnamespace": self._joined}))
        return falling(infos, _PREFIX)

    async def _by_title_words(self, term: str, limit: int) -> list[PageInfo]:
        words = search_words(term)
        if not words:
            return []
        if self._title_search:
            try:
                return await self._search("title", " ".join(words), limit)
            except ApiError as error:
                if "title-disabled" not in error.api_code:
                    raise
                self._title_search = False
        # CirrusSearch has no separate search of titles but a keyword; a title is one of the fields of its text search.
        return await self._search("text", " ".join(f"intitle:{word}" for word in words), limit)

    async def _search(self, what: str, words: str, limit: int) -> list[PageInfo]:
        asked = {"generator": "search", "gsrwhat": what, "gsrsearch": words, "gsrlimit": _hits(limit)}
        return self._ordered(await self.api.query({**asked, "gsrnamespace": self._joined}))

    def _ordered(self, found: PageQueryReply) -> list[PageInfo]:
        """Hits of a search in its order; a redirect's place is its page's, where that has none itself."""
        places = {move.to: move.index for move in reversed(found.redirects) if move.index is not None}
        last = len(found.pages)

        def place(info: PageInfo) -> int:
            return info.index if info.index is not None else places.get(info.title, last)

        return sorted(self._readable(found), key=place)

    def _readable(self, found: PageQueryReply) -> list[PageInfo]:
        """The pages that exist, in the namespaces that are asked for. They are remembered."""
        readable = []
        for info in found.pages:
            if info.exists and info.ns in self._namespaces:
                _check_address(info)
                self._told.add(info)
                readable.append(info)
        return readable


def _check_address(info: PageInfo) -> None:
    try:
        address = httpx2.URL(info.canonicalurl)
    except httpx2.InvalidURL:
        address = httpx2.URL("")
    if address.scheme not in ("http", "https") or not address.host:
        raise WikiReplyError(f"the wiki names no usable address of its page `{info.title}`")


def _hits(limit: int) -> str:
    return str(min(_MORE * limit, _MOST_HITS))


def _resolved(name: str, found: PageQueryReply) -> str:
    """The title that a name leads to."""
    for moves in (found.normalized, found.converted, found.redirects):
        name = next((move.to for move in moves if move.source == name), name)
    # Redirects to redirects are listed one by one, in any order.
    steps = {move.source: move.to for move in found.redirects}
    for _ in range(len(steps)):
        name = steps.get(name, name)
    return name
