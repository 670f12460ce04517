"""Replies of a MediaWiki's ``api.php`` (``formatversion=2``), as far as they are used."""

from __future__ import annotations

from msgspec import Struct, field


class PageInfo(Struct, frozen=True):
    """A page as ``prop=info`` tells it. A page that does not exist has revision 0."""

    title: str
    ns: int = 0
    pageid: int = 0
    lastrevid: int = 0
    canonicalurl: str = ""
    index: int | None = None  # place among the hits of a search
    missing: bool = False
    invalid: bool = False
    special: bool = False

    @property
    def exists(self) -> bool:
        """Whether it can be read."""
        return self.lastrevid > 0 and not (self.missing or self.invalid or self.special)


class Move(Struct, frozen=True):
    """A title that stands for another one: a redirect, or the title as the wiki writes it."""

    to: str
    source: str = field(name="from")
    index: int | None = None


class PageQueryReply(Struct, frozen=True):
    """The reply to a query about pages, redirects resolved."""

    pages: list[PageInfo] = []
    normalized: list[Move] = []
    converted: list[Move] = []
    redirects: list[Move] = []


class SearchInfo(Struct, frozen=True):
    """What a search engine says of a search besides its hits."""

    suggestion: str = ""


class SearchList(Struct, frozen=True):
    """The reply to ``list=search``, of which only that is wanted."""

    searchinfo: SearchInfo = SearchInfo()


class Parsed(Struct, frozen=True):
    """A page as HTML."""

    title: str
    revid: int
    text: str


class Site(Struct, frozen=True):
    """What the wiki says of itself."""

    sitename: str = ""
    generator: str = ""  # MediaWiki and its version
    pages: int = 0


class Problem(Struct, frozen=True):
    """Why the API refuses."""

    code: str
    info: str = ""


class ApiFailure(Struct, frozen=True):
    """What any reply may be instead of what was asked for."""

    error: Problem | None = None


class QueryReply(ApiFailure, frozen=True):
    """To ``action=query`` about pages."""

    query: PageQueryReply = PageQueryReply()


class SearchReply(ApiFailure, frozen=True):
    """To ``list=search``."""

    query: SearchList = SearchList()


class ParseReply(ApiFailure, frozen=True):
    """To ``action=parse``."""

    parse: Parsed | None = None


class General(Struct, frozen=True):
    """Of ``siprop=general``."""

    sitename: str = ""
    generator: str = ""


class Statistics(Struct, frozen=True):
    """Of ``siprop=statistics``."""

    pages: int = 0


class SiteQuery(Struct, frozen=True):
    """What ``meta=siteinfo`` tells."""

    general: General
    statistics: Statistics = Statistics()


class SiteReply(ApiFailure, frozen=True):
    """To ``action=query`` about the wiki."""

    query: SiteQuery | None = None
