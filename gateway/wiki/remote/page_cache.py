"""Pages of a wiki behind an API, kept in the database by title and revision, so that a restart costs nothing."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec
import structlog

from gateway.base.errors import HearthError
from gateway.store.db import Database
from gateway.store.wiki import fetched_pages as store
from gateway.wiki.html.page import VERSION
from gateway.wiki.remote.values import PageInfo
from gateway.wiki.sketch import sketch
from gateway.wiki.source import SECTIONS, Page

# A page's revision is asked for again when it was told longer ago than this.
_FRESH_SECONDS = 30.0
_MAX_INFOS = 2048
# A page that would push out much of what is kept is not worth that.
_LARGEST_SHARE = 4

log = structlog.get_logger(__name__)


class PageInfoCache:
    """What the wiki lately said of pages: revisions, addresses. In memory alone."""

    def __init__(self) -> None:
        self._infos: OrderedDict[str, tuple[PageInfo, float]] = OrderedDict()

    def add(self, info: PageInfo) -> None:
        """Remember what the wiki said of a page just now."""
        self._infos[info.title] = (info, time.monotonic())
        self._infos.move_to_end(info.title)
        while len(self._infos) > _MAX_INFOS:
            self._infos.popitem(last=False)

    def get(self, title: str) -> PageInfo | None:
        """What the wiki said of the page, unless that was too long ago."""
        info, at = self._infos.get(title, (None, 0.0))
        return info if info is not None and time.monotonic() - at < _FRESH_SECONDS else None


class PageCache:
    """The pages of one wiki that were used last. A database that fails costs requests to the wiki, not answers.

    ``on_new`` is called when there is another page, or another revision of one. ``pages`` and ``bytes`` are what is
    kept, ``hits`` and ``misses`` what was asked for since the start.
    """

    def __init__(
        self, database: Database, wiki: str, max_bytes: int, on_new: Callable[[], None] = lambda: None
    ) -> None:
        self._database = database
        self._wiki = wiki
        self._max_bytes = max_bytes
        self._on_new = on_new
        self.pages = self.bytes = self.hits = self.misses = 0

    async def open(self) -> None:
        """Drop what is of another wiki. Raises HearthError."""
        totals = await self._database.write(lambda c: store.keep_only(c, self._wiki, VERSION))
        self._set(totals)

    async def get(self, title: str, revision: int) -> Page | None:
        """The page at that revision."""
        now = time.time()
        try:
            found = await self._database.read(
                lambda c: store.get_fetched(c, self._wiki, title, revision, now)
            )
            if found is not None and found[1]:
                await self._database.write(lambda c: store.touch_fetched(c, title, now))
        except HearthError as error:
            self._failed(error)
            found = None
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        page, _ = found
        return Page(page.title, page.revision, page.url, SECTIONS.decode(page.sections))

    async def put(self, page: Page) -> None:
        """Keep the page; the longest unused ones go."""
        kept = await asyncio.to_thread(_packed, page)
        if len(kept.sections.encode()) > self._max_bytes // _LARGEST_SHARE:
            return
        try:
            totals = await self._database.write(
                lambda c: store.put_fetched(
                    c, kept, wiki=self._wiki, reader=VERSION, now=time.time(), max_bytes=self._max_bytes
                )
            )
        except HearthError as error:
            self._failed(error)
            return
        self._set(totals)
        self._on_new()

    async def drop(self, title: str) -> None:
        """Forget a page that is no more, or has another name."""
        try:
            if await self._database.read(lambda c: store.has_fetched(c, title)):
                self._set(await self._database.write(lambda c: store.drop_fetched(c, title)))
        except HearthError as error:
            self._failed(error)

    def _set(self, totals: store.Totals) -> None:
        self.pages, self.bytes = totals.pages, totals.bytes

    def _failed(self, error: HearthError) -> None:
        log.warning("fetched pages cannot be kept", problem=error.message)


def _packed(page: Page) -> store.FetchedPage:
    text = "\n\n".join(section.text for section in page.sections)
    sections = msgspec.json.encode(page.sections).decode()
    return store.FetchedPage(page.title, page.revision, page.url, sketch(text), sections)
