"""A MediaWiki on another machine, through its API: a :class:`gateway.wiki.source.WikiSource`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import httpx2

from gateway.aio import side_by_side
from gateway.errors import NotFoundError
from gateway.settings import WikiSettings
from gateway.store import fts
from gateway.wiki.api import Api, ApiError
from gateway.wiki.api_values import Found, PageInfo
from gateway.wiki.extract import normal_title
from gateway.wiki.html_page import extract_html
from gateway.wiki.page_cache import PageCache
from gateway.wiki.source import Page, PageRef, WikiHealth
from gateway.wiki.term_names import LONGEST_TITLE, names_in
from gateway.wiki.trouble import WikiReplyError

# How sure each kind of title match is; a hit's score falls a little with its place, never to the next kind's.
_EXACT, _PREFIX, _WORDS, _CONTAINED = 1.0, 0.9, 0.8, 0.7
_STEP = 0.0005
# Redirects fold into their pages, so more are asked for than are wanted.
_MORE = 2
_MOST_HITS = 50  # the API's own limit for anybody
_RANKED = 10
_WORDS_ALONE = 3
_LONGEST_SEARCH = 280  # bytes; CirrusSearch refuses more than 300


class MediaWiki:
    """Searches and fetches pages. Every method raises WikiUnavailableError and WikiReplyError."""

    def __init__(self, settings: WikiSettings) -> None:
        self.api = Api(settings)
        self.cache = PageCache()
        self._namespaces = frozenset(settings.namespaces)
        self._joined = "|".join(str(number) for number in sorted(self._namespaces))
        self._title_search = True  # until the wiki's search engine says that it has none

    async def search_titles(self, term: str, limit: int) -> list[PageRef]:
        """Pages by name: exact, redirect, prefix, names inside the term, words of the title."""
        term = _clean(term)
        if limit < 1 or not term:
            return []
        found = await side_by_side((self._named(term), self._by_prefix(term, limit)))
        scored = [each for some in found for each in some]
        if len({info.title for info, score in scored if score > _CONTAINED}) < limit:
            scored += _falling(await self._by_title_words(term, limit), _WORDS)
        return _best(scored, limit)

    async def search_text(self, term: str, limit: int) -> list[PageRef]:
        """Pages with all words of the term; when there are none, pages with some of them, most words first."""
        words = _search_words(term)
        if limit < 1 or not words:
            return []
        infos = await self._search("text", " ".join(words), max(limit, _RANKED))
        if infos or len(words) == 1:
            return _best(_falling(_named_first(infos, words), 1.0), limit)
        alone = sorted(words, key=len, reverse=True)[:_WORDS_ALONE]
        found = await side_by_side(self._search("text", word, limit) for word in alone)
        scores: dict[str, float] = {}
        for infos in found:
            for info, score in _falling(infos, 1.0):
                scores[info.title] = scores.get(info.title, 0.0) + score / len(alone) / 2
        ranked = sorted(scores.items(), key=lambda item: -item[1])
        return [PageRef(title, score) for title, score in ranked[:limit]]

    async def fetch(self, title: str) -> Page:
        """The page of that title, redirects followed. Raises NotFoundError, also for other namespaces' pages."""
        info = self.cache.info(normal_title(title)) or await self._info(title)
        known = self.cache.get(info.title, info.lastrevid)
        if known is not None:
            return known
        parsed = await self.api.parse(info.title)
        # Takes a second for the longest pages; other requests go on meanwhile.
        sections = await asyncio.to_thread(extract_html, parsed.text)
        page = Page(parsed.title, parsed.revid, info.canonicalurl, sections)
        self.cache.put(page)
        return page

    async def health(self) -> WikiHealth:
        """How the requests went so far; makes none."""
        record, address = self.api.record, self.api.client.address
        return WikiHealth(
            source="api",
            status="failing" if record.problem else "ok" if record.requests else "unused",
            address=address,
            pages=len(self.cache),
            requests=record.requests,
            failures=record.failures,
            cache_hits=self.cache.hits,
            last_reply_seconds=record.last_reply_seconds,
            paused_seconds=self.api.client.paused,
            problem=record.problem,
        )

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
                scored.append((info, _EXACT if exact else _CONTAINED - place * _STEP))
        return scored

    async def _by_prefix(self, term: str, limit: int) -> list[tuple[PageInfo, float]]:
        if len(term.encode("utf-8", "replace")) > LONGEST_TITLE:
            return []
        asked = {"generator": "prefixsearch", "gpssearch": term, "gpslimit": _hits(limit)}
        infos = self._ordered(await self.api.query({**asked, "gpsnamespace": self._joined}))
        return _falling(infos, _PREFIX)

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
        # CirrusSearch has no separate search of titles but a keyword; a title is one of the fields of its text search.
        return await self._search("text", " ".join(f"intitle:{word}" for word in words), limit)

    async def _search(self, what: str, words: str, limit: int) -> list[PageInfo]:
        asked = {"generator": "search", "gsrwhat": what, "gsrsearch": words, "gsrlimit": _hits(limit)}
        return self._ordered(await self.api.query({**asked, "gsrnamespace": self._joined}))

    def _ordered(self, found: Found) -> list[PageInfo]:
        """Hits of a search in its order; a redirect's place is its page's, where that has none itself."""
        places = {move.to: move.index for move in reversed(found.redirects) if move.index is not None}
        last = len(found.pages)

        def place(info: PageInfo) -> int:
            return info.index if info.index is not None else places.get(info.title, last)

        return sorted(self._readable(found), key=place)

    def _readable(self, found: Found) -> list[PageInfo]:
        """The pages that exist, in the namespaces that are asked for. They are remembered."""
        readable = []
        for info in found.pages:
            if info.exists and info.ns in self._namespaces:
                _check_address(info)
                self.cache.told(info)
                readable.append(info)
        return readable


def _check_address(info: PageInfo) -> None:
    try:
        address = httpx2.URL(info.canonicalurl)
    except httpx2.InvalidURL:
        address = httpx2.URL("")
    if address.scheme not in ("http", "https") or not address.host:
        raise WikiReplyError(f"the wiki names no usable address of its page `{info.title}`")


def _clean(term: str) -> str:
    """The term on one line, without what no title and no search can have."""
    kept = "".join(character if character.isprintable() else " " for character in term)
    return " ".join(kept.replace("|", " ").split())


def _search_words(term: str) -> list[str]:
    """The term's words, as many as a search takes. Without signs, none is an operator of the search engine."""
    words: list[str] = []
    left = _LONGEST_SEARCH
    for word in fts.words(_clean(term)):
        left -= len(word.encode("utf-8", "replace")) + len(" intitle:")
        if left < 0:
            break
        words.append(word)
    return words


def _hits(limit: int) -> str:
    return str(min(_MORE * limit, _MOST_HITS))


def _resolved(name: str, found: Found) -> str:
    """The title that a name leads to."""
    for moves in (found.normalized, found.converted, found.redirects):
        name = next((move.to for move in moves if move.source == name), name)
    # Redirects to redirects are listed one by one, in any order.
    steps = {move.source: move.to for move in found.redirects}
    for _ in range(len(steps)):
        name = steps.get(name, name)
    return name


def _falling(infos: Iterable[PageInfo], top: float) -> list[tuple[PageInfo, float]]:
    return [(info, top - index * _STEP) for index, info in enumerate(infos)]


def _named_first(infos: list[PageInfo], words: list[str]) -> list[PageInfo]:
    """Hits whose titles have more of the words first: MediaWiki's own search engines do not rank at all."""

    def named(info: PageInfo) -> int:
        title = set(fts.words(info.title))
        return sum(word in title for word in words)

    return sorted(infos, key=named, reverse=True)


def _best(scored: Iterable[tuple[PageInfo, float]], limit: int) -> list[PageRef]:
    """Best first, no page twice."""
    best: dict[str, float] = {}
    for info, score in scored:
        best[info.title] = max(score, best.get(info.title, 0.0))
    ranked = sorted(best.items(), key=lambda item: -item[1])
    return [PageRef(title, score) for title, score in ranked[:limit]]
