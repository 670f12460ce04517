"""A MediaWiki on another machine, accessed through its API: a :class:`gateway.wiki.source.WikiSource`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

import httpx2
import structlog
from prometheus_client.core import Metric

from gateway.base.aio import side_by_side
from gateway.base.errors import HearthError, NotFoundError
from gateway.config.settings import WikiSettings
from gateway.store import fts
from gateway.store.db import Database
from gateway.store.wiki.fetched_pages import fetched_sketch
from gateway.wiki.html.page import extract_html
from gateway.wiki.remote.api import Api, ApiError, wiki_metrics
from gateway.wiki.remote.page_cache import PageCache, PageInfoCache
from gateway.wiki.remote.trouble import WikiReplyError
from gateway.wiki.remote.values import PageInfo, QueryReply
from gateway.wiki.search.hybrid import HybridSearch
from gateway.wiki.search.term_names import LONGEST_TITLE, names_in
from gateway.wiki.search.vectors import Meaning
from gateway.wiki.sites import site_name
from gateway.wiki.source import Hits, Page, PageRef, Site, WikiHealth
from gateway.wiki.wikitext.extract import plain_title

# Score of each kind of title match. A hit's rank lowers its score, but never to the next kind's.
_EXACT, _PREFIX, _WORDS, _CONTAINED = 1.0, 0.9, 0.8, 0.7
_OVERFETCH = 2  # redirects fold into their pages
_MAX_HITS = 50  # the API's own limit for anonymous clients
_RANKED = 10
_SINGLE_WORDS = 3
_SPARE = 12
# Score that a hit loses per rank: 50 hits lose less than the distance between two kinds of matches.
_STEP = 0.0005
_MAX_SEARCH_BYTES = 280  # CirrusSearch refuses more than 300
_SITE_SECONDS = 3.0  # a question waits for the wiki's name no longer
_SITE_RETRY_SECONDS = 300.0

log = structlog.get_logger(__name__)


class MediaWiki:
    """Searches and fetches pages. Every method raises WikiUnavailableError and WikiReplyError.

    With ``database`` fetched pages are cached, and ``meaning`` can find them. ``on_new`` is called when the cache has
    a new page or revision.
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
        if database is not None and settings.cache_bytes:
            self.cache = PageCache(database, self.api.client.address, settings.cache_bytes, on_new)
        searched = meaning if self.cache is not None else None
        self._hybrid = HybridSearch(self._by_words, searched, fetched_sketch, settings.search, spare=_SPARE)
        self._infos = PageInfoCache()
        self._namespaces = frozenset(settings.namespaces)
        self._joined_namespaces = "|".join(str(number) for number in sorted(self._namespaces))
        self._site: Site | None = None
        self._site_lock = asyncio.Lock()
        self._site_after = 0.0  # when the wiki may be asked for its name again
        self._title_search = True  # until the wiki's search engine refuses it

    async def open(self) -> None:
        """Open the cache. Raises HearthError when the database fails."""
        if self.cache is not None:
            await self.cache.open()

    async def close(self) -> None:
        await self.api.client.close()

    async def site(self) -> Site:
        """Fetch the wiki's name once. After a failure, wait before the next try. Pages carry their own addresses."""
        async with self._site_lock:
            if self._site is None and time.monotonic() >= self._site_after:
                try:
                    async with asyncio.timeout(_SITE_SECONDS):
                        self._site = Site(site_name(await self.api.name()))
                except (HearthError, TimeoutError) as error:
                    self._site_after = time.monotonic() + _SITE_RETRY_SECONDS
                    log.warning("the wiki does not give its name", problem=str(error) or "no reply in time")
        return self._site or Site()

    async def subjects(self, limit: int) -> list[str]:
        """None: they would need a request."""
        return []

    async def health(self) -> WikiHealth:
        record, cache = self.api.record, self.cache
        return WikiHealth(
            source="api",
            status="failing" if record.problem else "ok" if record.requests else "unused",
            address=self.api.client.address,
            pages=cache.pages if cache is not None else 0,
            requests=record.requests,
            retries=record.retries.total(),
            failures=record.failures.total(),
            cache_hits=cache.hits if cache is not None else 0,
            cache_bytes=cache.bytes if cache is not None else 0,
            last_reply_seconds=record.last_reply_seconds,
            paused_seconds=self.api.client.paused,
            problem=record.problem,
        )

    def metrics(self) -> Iterable[Metric]:
        return wiki_metrics(self.api.record, self.cache, self.api.client.paused)

    async def search_titles(self, term: str, limit: int) -> list[PageRef]:
        """Find pages by name: exact, redirect, prefix, names inside the term, words of the title."""
        term = _clean(term)
        if limit < 1 or not term:
            return []
        named, prefixed = await side_by_side((self._named(term), self._by_prefix(term, limit)))
        scored = [*named, *prefixed]
        if len({info.title for info, score in scored if score > _CONTAINED}) < limit:
            scored += _by_rank(await self._by_title_words(term, limit), _WORDS)
        return _best(scored, limit)

    async def search_text(self, term: str, limit: int) -> Hits:
        """Search with the wiki's engine, cached pages by meaning, or both, as ``wiki.search`` says."""
        return await self._hybrid.search(term, limit)

    async def fetch(self, title: str) -> Page:
        """The page of that title, redirects followed. Raises NotFoundError, also for other namespaces' pages."""
        try:
            info = self._infos.get(plain_title(title)) or await self._info(title)
            if info.title != plain_title(title):
                await self._drop(title)  # now a redirect, or never a page's own title
            cached = await self.cache.get(info.title, info.lastrevid) if self.cache is not None else None
            return cached or await self._parsed(info)
        except NotFoundError:
            await self._drop(title)
            raise

    async def _parsed(self, info: PageInfo) -> Page:
        parsed = await self.api.parse(info.title)
        # The longest pages take a second, so this runs beside other requests.
        sections = await asyncio.to_thread(extract_html, parsed.text)
        page = Page(parsed.title, parsed.revid, info.canonicalurl, sections)
        if self.cache is not None:
            await self.cache.put(page)
        return page

    async def _drop(self, title: str) -> None:
        if self.cache is not None:
            await self.cache.drop(plain_title(title))

    async def _info(self, title: str) -> PageInfo:
        if (
            title.strip()
            and "|" not in title
            and (found := self._readable(await self.api.query(titles=title)))
        ):
            return found[0]
        raise NotFoundError(f"the wiki has no page `{title}`")

    async def _by_words(self, term: str, limit: int) -> list[PageRef]:
        """Pages with all words of the term; without any, pages for the engine's suggestion, then pages with some of
        the words."""
        words = _search_words(term)
        if limit < 1 or not words:
            return []
        infos = await self._search("text", " ".join(words), max(limit, _RANKED))
        if infos:
            return _best(_by_rank(_named_first(infos, words), 1.0), limit)
        single = sorted(words, key=len, reverse=True)[:_SINGLE_WORDS] if len(words) > 1 else []
        suggested, *found = await side_by_side(
            [self._suggested(words, limit), *(self._search("text", word, limit) for word in single)]
        )
        scores = {info.title: 1.0 + score for info, score in _by_rank(suggested, 1.0)}
        for infos in found:
            for info, score in _by_rank(infos, 1.0):
                scores[info.title] = scores.get(info.title, 0.0) + score / len(single) / 2
        return _top(scores, limit)

    async def _suggested(self, words: list[str], limit: int) -> list[PageInfo]:
        """Pages for the words that CirrusSearch suggests instead of misspelled ones."""
        suggested = _search_words(await self.api.suggestion(" ".join(words), self._joined_namespaces))
        if not suggested or suggested == words:
            return []
        return _named_first(await self._search("text", " ".join(suggested), limit), suggested)

    async def _named(self, term: str) -> list[tuple[PageInfo, float]]:
        """Pages whose name, or that of a redirect to them, is the term or stands in it."""
        names = names_in(term)
        if not names:
            return []
        found = await self.api.query(titles="|".join(names))
        by_title = {info.title: info for info in self._readable(found)}
        scored = []
        for rank, name in enumerate(names):
            info = by_title.get(_resolved(name, found))
            if info is not None:
                exact = fts.title_key(name) == fts.title_key(term)
                scored.append((info, _EXACT if exact else _CONTAINED - rank * _STEP))
        return scored

    async def _by_prefix(self, term: str, limit: int) -> list[tuple[PageInfo, float]]:
        if len(term.encode("utf-8", "replace")) > LONGEST_TITLE:
            return []
        return _by_rank(await self._generate("prefixsearch", "gps", term, limit), _PREFIX)

    async def _by_title_words(self, term: str, limit: int) -> list[PageInfo]:
        words = _search_words(term)
        if not words:
            return []
        if self._title_search:
            try:
                return await self._search("title", " ".join(words), limit)
            except ApiError as error:
                if "title-disabled" not in error.api_code:
                    raise
                self._title_search = False
        # CirrusSearch has no title search, but a keyword for it in the text search.
        return await self._search("text", " ".join(f"intitle:{word}" for word in words), limit)

    async def _search(self, what: str, words: str, limit: int) -> list[PageInfo]:
        return await self._generate("search", "gsr", words, limit, gsrwhat=what)

    async def _generate(
        self, generator: str, prefix: str, term: str, limit: int, **options: str
    ) -> list[PageInfo]:
        """Hits by rank; a redirect's rank counts for its page where that has none itself."""
        options[f"{prefix}search"] = term
        options[f"{prefix}limit"] = str(min(_OVERFETCH * limit, _MAX_HITS))
        options[f"{prefix}namespace"] = self._joined_namespaces
        found = await self.api.query(generator=generator, **options)
        ranks = {move.to: move.index for move in reversed(found.redirects) if move.index is not None}
        last = len(found.pages)

        def rank(info: PageInfo) -> int:
            return info.index if info.index is not None else ranks.get(info.title, last)

        return sorted(self._readable(found), key=rank)

    def _readable(self, found: QueryReply) -> list[PageInfo]:
        """The existing pages of the configured namespaces; remembers their revisions."""
        readable = [info for info in found.pages if info.exists and info.ns in self._namespaces]
        for info in readable:
            _check_address(info)
            self._infos.add(info)
        return readable


def _check_address(info: PageInfo) -> None:
    try:
        address = httpx2.URL(info.canonicalurl)
    except httpx2.InvalidURL:
        address = httpx2.URL("")
    if address.scheme not in ("http", "https") or not address.host:
        raise WikiReplyError(f"the wiki names no usable address of its page `{info.title}`")


def _resolved(name: str, found: QueryReply) -> str:
    """The title that a name leads to."""
    for moves in (found.normalized, found.converted, found.redirects):
        name = next((move.to for move in moves if move.source == name), name)
    # Redirects to redirects are listed one by one, in any order.
    steps = {move.source: move.to for move in found.redirects}
    for _ in range(len(steps)):
        name = steps.get(name, name)
    return name


def _clean(term: str) -> str:
    """The term on one line, without characters that neither titles nor searches can have."""
    printable = "".join(character if character.isprintable() else " " for character in term)
    return " ".join(printable.replace("|", " ").split())


def _search_words(term: str) -> list[str]:
    """The term's words, up to the limit of a search. Only words, so nothing acts as a search operator."""
    words: list[str] = []
    left = _MAX_SEARCH_BYTES
    for word in fts.words(_clean(term)):
        left -= len(word.encode("utf-8", "replace")) + len(" intitle:")
        if left < 0:
            break
        words.append(word)
    return words


def _by_rank(infos: Iterable[PageInfo], top: float) -> list[tuple[PageInfo, float]]:
    """Scores from ``top`` downwards."""
    return [(info, top - index * _STEP) for index, info in enumerate(infos)]


def _named_first(infos: list[PageInfo], words: list[str]) -> list[PageInfo]:
    """Sort hits by how many of the words their titles have: MediaWiki's built-in search does not rank."""
    return sorted(infos, key=lambda info: len(set(fts.words(info.title)).intersection(words)), reverse=True)


def _best(scored: Iterable[tuple[PageInfo, float]], limit: int) -> list[PageRef]:
    """Best first, each page once."""
    found: dict[str, float] = {}
    for info, score in scored:
        found[info.title] = max(score, found.get(info.title, 0.0))
    return _top(found, limit)


def _top(scores: dict[str, float], limit: int) -> list[PageRef]:
    ranked = sorted(scores.items(), key=lambda item: -item[1])
    return [PageRef(title, score) for title, score in ranked[:limit]]
