"""Replies of a MediaWiki's ``api.php`` (``formatversion=2``), limited to the fields in use."""

from __future__ import annotations

from msgspec import Struct, field


class PageInfo(Struct, frozen=True):
    """A page of ``prop=info``. A missing page has revision 0."""

    title: str
    ns: int = 0
    lastrevid: int = 0
    canonicalurl: str = ""
    index: int | None = None  # rank among the hits of a search
    missing: bool = False
    invalid: bool = False
    special: bool = False

    @property
    def exists(self) -> bool:
        return self.lastrevid > 0 and not (self.missing or self.invalid or self.special)


class Move(Struct, frozen=True):
    """A redirect, or a title and its normalized form."""

    to: str
    source: str = field(name="from")
    index: int | None = None


class SearchInfo(Struct, frozen=True):
    """``srinfo=suggestion``."""

    suggestion: str = ""


class General(Struct, frozen=True):
    """``siprop=general``. ``generator`` is MediaWiki and its version."""

    sitename: str = ""
    generator: str = ""


class Statistics(Struct, frozen=True):
    """``siprop=statistics``."""

    pages: int = 0


class QueryReply(Struct, frozen=True):
    """The part of a reply that ``action=query`` fills."""

    pages: list[PageInfo] = []
    normalized: list[Move] = []
    converted: list[Move] = []
    redirects: list[Move] = []
    searchinfo: SearchInfo = SearchInfo()
    general: General | None = None
    statistics: Statistics = Statistics()


class Parsed(Struct, frozen=True):
    """The part of a reply that ``action=parse`` fills: a page as HTML."""

    title: str
    revid: int
    text: str


class Problem(Struct, frozen=True):
    """Why the API refused a request."""

    code: str
    info: str = ""


class Reply(Struct, frozen=True):
    """Any reply; fields of other actions keep their defaults."""

    error: Problem | None = None
    query: QueryReply = QueryReply()
    parse: Parsed | None = None
