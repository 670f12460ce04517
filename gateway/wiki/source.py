"""The interface of a wiki, as the ask flow uses it."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec
from msgspec import Struct


class PageRef(Struct, frozen=True):
    """A search hit. ``title`` is that of the page, never of a redirect; better matches score higher.

    ``redirect`` is the name that was found, if it is a redirect's. ``section`` is the index of the section that is
    nearest by meaning, if vectors were compared.
    """

    title: str
    score: float
    section: int | None = None
    redirect: str = ""


class Hits(Struct, frozen=True):
    """The hits of a text search, best first.

    ``searches`` is the number of searches whose results were fused.
    ``problem`` says why a part of the search was skipped, such as a failing embedding model; ``note`` is information.
    """

    refs: list[PageRef]
    problem: str | None = None
    note: str | None = None
    searches: int = 1


class Section(Struct, frozen=True):
    """One section as plain text. The lead has heading and anchor ``""`` and level 1."""

    heading: str
    anchor: str  # fragment of the page URL; `:line` in a file
    level: int
    text: str  # paragraphs separated by blank lines; lists, tables (" | " rows) and code kept line by line


# Decodes stored pages. Built at import because threads use it (docs/decisions/0010-first-conversion.md).
SECTIONS = msgspec.json.Decoder(list[Section])


class Page(Struct, frozen=True):
    """A page at one revision. ``url`` has no fragment.

    ``asked_as`` is the redirect that a question names it by, and ``told_by`` the title without the words that the
    titles of all found pages share, such as "FAQ".
    """

    title: str
    revision: int
    url: str
    sections: list[Section]
    asked_as: str = ""
    told_by: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it is a file of a project, whose sections are cited by their lines."""
        return any(section.anchor.startswith(":") for section in self.sections)

    @property
    def subject(self) -> str:
        """The name to compare with a question."""
        return self.asked_as or self.told_by or self.title

    @property
    def names(self) -> str:
        """The title, with the name that the question has for it."""
        return f"{self.title} ({self.asked_as})" if self.asked_as else self.title


class Site(Struct, frozen=True):
    """A wiki's name, and the address of its pages with ``{title}`` in it; "" where they are not known."""

    name: str = ""
    page_url: str = ""


class KnownSource(Struct, frozen=True):
    """Where a part of a known answer stands; ``url`` is the whole address."""

    title: str
    section: str
    url: str


class KnownAnswer(Struct, frozen=True):
    """An answer that needs no model; ``[n]`` in the text is the n-th source."""

    text: str
    sources: list[KnownSource]


class WikiHealth(Struct, frozen=True, kw_only=True):
    """The state of a wiki for operators. ``status`` is ``unused`` before the first request."""

    source: Literal["local", "api"]
    status: Literal["ok", "failing", "unused"]
    address: str  # of the API; for the local store that of its pages
    pages: int  # in the local store or the cache
    requests: int = 0  # to the API
    failures: int = 0  # after all retries
    retries: int = 0
    cache_hits: int = 0
    cache_bytes: int = 0
    last_reply_seconds: float | None = None  # since the API's last successful reply
    paused_seconds: float = 0.0  # until the API accepts requests again
    problem: str | None = None  # if the last request failed


class WikiSource(Protocol):
    """A wiki. Methods raise HearthError when it is unreachable, NotFoundError for a missing page."""

    async def search_titles(self, term: str, limit: int) -> list[PageRef]:
        """Find pages by their titles and redirects, best first."""
        ...

    async def search_text(self, term: str, limit: int) -> Hits:
        """Find pages by their text."""
        ...

    async def fetch(self, title: str) -> Page:
        """The page of that title, redirects followed."""
        ...

    async def site(self) -> Site:
        """The wiki's description of itself; unknown instead of an error when it is unreachable."""
        ...

    async def subjects(self, limit: int) -> list[str]:
        """Titles to ask about; none if that would need a request."""
        ...

    async def health(self) -> WikiHealth:
        """The state of the wiki; makes no request."""
        ...
