"""Cache of fetched pages in the database, by title and revision."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar

import msgspec
import structlog

from gateway.base.errors import HearthError
from gateway.store.db import Database
from gateway.store.wiki import fetched_pages as store
from gateway.wiki.html.page import VERSION
from gateway.wiki.remote.values import PageInfo
from gateway.wiki.sketch import sketch
from gateway.wiki.source import SECTIONS, Page

_FRESH_SECONDS = 30.0  # how long a revision counts as current
_MAX_INFOS = 2048
# A page over a quarter of the cache is not kept: it would evict too many others.
_LARGEST_SHARE = 4

T = TypeVar("T")

log = structlog.get_logger(__name__)


class PageInfoCache:
    """Recent revisions and addresses of pages, in memory."""

    def __init__(self) -> None:
        self._infos: dict[str, tuple[PageInfo, float]] = {}  # the oldest first

    def add(self, info: PageInfo) -> None:
        self._infos.pop(info.title, None)
        self._infos[info.title] = (info, time.monotonic())
        if len(self._infos) > _MAX_INFOS:
            del self._infos[next(iter(self._infos))]

    def get(self, title: str) -> PageInfo | None:
        """The page's revision and address, unless they are too old."""
        info, at = self._infos.get(title, (None, 0.0))
        return info if info is not None and time.monotonic() - at < _FRESH_SECONDS else None


class PageCache:
    """The most recently used pages of one wiki. A failing database counts as a cache miss.

    ``on_new`` is called after a page or revision was added. ``pages`` and ``bytes`` are totals, ``hits`` and
    ``misses`` count since the start.
    """

    def __init__(self, database: Database, wiki: str, max_bytes: int, on_new: Callable[[], None]) -> None:
        self._database = database
        self._wiki = wiki
        self._max_bytes = max_bytes
        self._on_new = on_new
        self.pages = self.bytes = self.hits = self.misses = 0

    async def open(self) -> None:
        """Drop the pages of other wikis. Raises HearthError."""
        self._set(await self._database.write(lambda c: store.keep_only(c, self._wiki, VERSION)))

    async def get(self, title: str, revision: int) -> Page | None:
        now = time.time()
        found = await self._guard(
            self._database.read(lambda c: store.get_fetched(c, self._wiki, title, revision, now))
        )
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        page, touch = found
        if touch:
            await self._guard(self._database.write(lambda c: store.touch_fetched(c, title, now)))
        return Page(page.title, page.revision, page.url, SECTIONS.decode(page.sections))

    async def put(self, page: Page) -> None:
        """Add the page and evict the least recently used ones."""
        packed = await asyncio.to_thread(_packed, page)
        if len(packed.sections.encode()) > self._max_bytes // _LARGEST_SHARE:
            return
        put = partial(
            store.put_fetched, page=packed, wiki=self._wiki, reader=VERSION, max_bytes=self._max_bytes
        )
        totals = await self._guard(self._database.write(lambda c: put(c, now=time.time())))
        if totals is not None:
            self._set(totals)
            self._on_new()

    async def drop(self, title: str) -> None:
        if await self._guard(self._database.read(lambda c: store.has_fetched(c, title))):
            totals = await self._guard(self._database.write(lambda c: store.drop_fetched(c, title)))
            if totals is not None:
                self._set(totals)

    async def _guard(self, work: Awaitable[T]) -> T | None:
        try:
            return await work
        except HearthError as error:
            log.warning("the page cache failed", problem=error.message)
            return None

    def _set(self, totals: store.Totals) -> None:
        self.pages, self.bytes = totals.pages, totals.bytes


def _packed(page: Page) -> store.FetchedPage:
    text = "\n\n".join(section.text for section in page.sections)
    sections = msgspec.json.encode(page.sections).decode()
    return store.FetchedPage(page.title, page.revision, page.url, sketch(text), sections)
