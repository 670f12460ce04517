"""What a dump consists of: the wiki it is of, its pages, and the errors it can have."""

from __future__ import annotations

from msgspec import Struct

from gateway.base.errors import HearthError

# MediaWiki's own limit for a page ($wgMaxArticleSize) is 2 MiB.
MAX_TEXT_BYTES = 4 * 1024 * 1024


class DumpError(HearthError):
    """The file is no export, or stops being one. The pages before that point have been handed out."""

    code = "bad_dump"


class SiteInfo(Struct):
    """What a dump says about its wiki. ``namespaces`` maps numbers to names; the main one's is empty."""

    sitename: str = ""
    dbname: str = ""
    base: str = ""
    namespaces: dict[int, str] = {}


class DumpPage(Struct, frozen=True, kw_only=True):
    """A page at its newest revision. ``number`` counts all pages of the dump from 1.

    ``redirect`` is the target that the dump names. ``problem`` says why there is no usable ``text``; ``deleted``, that
    the wiki has withdrawn it.
    """

    number: int
    title: str
    namespace: int
    revision: int
    model: str
    text: str
    redirect: str | None = None
    problem: str | None = None
    deleted: bool = False


class Revision:
    """A revision while it is read. Its ``pieces`` are its text; too large a text is dropped as it comes."""

    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.pieces: list[str] = []
        self.size = 0  # bytes of UTF-8
        self.announced = 0
        self.deleted = False

    @property
    def age(self) -> tuple[str, int]:
        """Newer revisions compare greater."""
        return self.fields.get("timestamp", ""), number(self.fields.get("id", ""))

    @property
    def problem(self) -> str | None:
        if number(self.fields.get("id", "")) < 1:
            return "its revision has no number"
        if self.size > MAX_TEXT_BYTES:
            return f"its text is larger than {MAX_TEXT_BYTES // 2**20} MiB"
        if self.deleted:
            return "its text was deleted"
        if not self.size and self.announced > 0:
            return "the dump has no texts, only their sizes"
        return None


def is_number(text: str) -> bool:
    """Whether :func:`number` reads it as more than nothing."""
    return len(text) <= 18 and text.removeprefix("-").isdecimal() and text.isascii()


def number(text: str) -> int:
    """An integer as dumps write it, else 0."""
    return int(text) if is_number(text) else 0
