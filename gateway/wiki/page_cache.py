"""Pages of a wiki on another machine, kept as long as their revision is the newest known one."""

from __future__ import annotations

import time
from collections import OrderedDict

from gateway.wiki.api_values import PageInfo
from gateway.wiki.source import Page

MAX_BYTES = 16 * 1024 * 1024
# A page's revision is asked for again when it was told longer ago than this.
_FRESH_SECONDS = 30.0
_MAX_INFOS = 2048


class PageCache:
    """Pages by title and revision, and what was lately told about titles. Bounded by text size and number."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._pages: OrderedDict[tuple[str, int], tuple[Page, int]] = OrderedDict()
        self._infos: OrderedDict[str, tuple[PageInfo, float]] = OrderedDict()
        self.bytes = 0
        self.hits = 0

    def __len__(self) -> int:
        return len(self._pages)

    def get(self, title: str, revision: int) -> Page | None:
        """The page at that revision."""
        found = self._pages.get((title, revision))
        if found is None:
            return None
        self._pages.move_to_end((title, revision))
        self.hits += 1
        return found[0]

    def put(self, page: Page) -> None:
        """Keep the page; the least recently used ones go."""
        key = (page.title, page.revision)
        size = sum(len(section.text) + len(section.heading) for section in page.sections) + len(page.title)
        if size > self._max_bytes // 4:
            return
        self._forget(key)
        self._pages[key] = (page, size)
        self.bytes += size
        while self.bytes > self._max_bytes:
            self._forget(next(iter(self._pages)))

    def told(self, info: PageInfo) -> None:
        """Remember what the wiki said of a page just now."""
        self._infos[info.title] = (info, time.monotonic())
        self._infos.move_to_end(info.title)
        while len(self._infos) > _MAX_INFOS:
            self._infos.popitem(last=False)

    def info(self, title: str) -> PageInfo | None:
        """What the wiki said of the page, unless that was too long ago."""
        info, at = self._infos.get(title, (None, 0.0))
        return info if info is not None and time.monotonic() - at < _FRESH_SECONDS else None

    def _forget(self, key: tuple[str, int]) -> None:
        found = self._pages.pop(key, None)
        if found is not None:
            self.bytes -= found[1]
