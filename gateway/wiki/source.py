"""What the ask flow sees of a wiki: two searches and a fetch that keeps sections."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec
from msgspec import Struct


class PageRef(Struct, frozen=True):
    """A search hit. ``title`` is the page itself, never a redirect; ``score`` is higher for better matches."""

    title: str
    score: float


class Hits(Struct, frozen=True):
    """What a text search found, best first.

    ``problem`` says why a part of the search was left out, such as a model that makes no vectors; ``note`` is worth
    knowing and no problem.
    """

    refs: list[PageRef]
    problem: str | None = None
    note: str | None = None


class Section(Struct, frozen=True):
    """One section as plain text. The lead has heading and anchor ``""`` and level 1."""

    heading: str
    anchor: str  # fragment of the page URL
    level: int
    text: str  # paragraphs separated by blank lines; lists, tables (" | " rows) and code kept line by line


# Of a page as it is stored; made here: threads use it (docs/decisions/0010-first-conversion.md).
SECTIONS = msgspec.json.Decoder(list[Section])


class Page(Struct, frozen=True):
    """A page at one revision. ``url`` is the page's address without a fragment."""

    title: str
    revision: int
    url: str
    sections: list[Section]


class WikiHealth(Struct, frozen=True, kw_only=True):
    """What an operator sees of a wiki. ``status`` is ``unused`` until something was asked for."""

    source: Literal["local", "api"]
    status: Literal["ok", "failing", "unused"]
    address: str  # of the API; for the local store the base of citation links
    pages: int  # in the local store, or kept from the API
    requests: int = 0  # to the API, and how many of them failed in spite of trying again
    failures: int = 0
    retries: int = 0
    cache_hits: int = 0
    cache_bytes: int = 0  # of the pages that are kept
    last_reply_seconds: float | None = None  # since the API's last useful reply
    paused_seconds: float = 0.0  # for which the API asked to be left alone
    problem: str | None = None  # of the last request, if it failed


class WikiSource(Protocol):
    """A wiki that can be searched. Raises NotFoundError for a missing page, HearthError when unreachable."""

    async def search_titles(self, term: str, limit: int) -> list[PageRef]:
        """Pages whose title (or a redirect to them) matches, best first."""
        ...

    async def search_text(self, term: str, limit: int) -> Hits:
        """Pages whose text matches, and what was missing from the search."""
        ...

    async def fetch(self, title: str) -> Page:
        """The page of that title, redirects followed."""
        ...

    async def health(self) -> WikiHealth:
        """How the wiki does, without asking anybody outside."""
        ...
