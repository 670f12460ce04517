"""Incremental parser of MediaWiki XML exports (versions 0.3 to 0.11).

Dumps are untrusted and of any size. Memory is bounded by two revisions of a page; depth, names, unfinished tags and
texts have limits. A document type declaration, and with it entity expansion, is refused; no export has one.
"""

from __future__ import annotations

from xml.parsers import expat

from msgspec import Struct

from gateway.base.errors import HearthError

MAX_TEXT_BYTES = 4 * 1024 * 1024  # MediaWiki's own limit for a page ($wgMaxArticleSize) is 2 MiB
_MAX_FIELD_CHARACTERS = 4096  # of a title (MediaWiki: 255 bytes), a timestamp, a number
_MAX_DEPTH = 16
_MAX_NAMES = 512  # different elements and attributes; expat remembers each one
_MAX_NAMESPACES = 1000
_MAX_TOKEN_BYTES = 1024 * 1024  # of one tag or comment: expat buffers it until its end
_BUFFER_BYTES = 256 * 1024

_ROOT = ("mediawiki",)
_SITE = (*_ROOT, "siteinfo")
_NAMESPACE = (*_SITE, "namespaces", "namespace")
_PAGE = (*_ROOT, "page")
_REVISION = (*_PAGE, "revision")
_TEXT = (*_REVISION, "text")
_FIELDS = {
    _NAMESPACE,
    *((*_SITE, name) for name in ("sitename", "dbname", "base")),
    *((*_PAGE, name) for name in ("title", "ns")),
    *((*_REVISION, name) for name in ("id", "timestamp", "model")),
}
_ENDED_EARLY = {
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}


class DumpError(HearthError):
    """The file is not an export, is damaged or ends early."""

    code = "bad_dump"


class SiteInfo(Struct):
    """``namespaces`` maps numbers to names; the main namespace's name is empty."""

    sitename: str = ""
    dbname: str = ""
    base: str = ""
    namespaces: dict[int, str] = {}


class DumpPage(Struct, frozen=True, kw_only=True):
    """A page at its newest revision. ``number`` counts all pages of the dump from 1.

    ``redirect`` is the target that the dump names. ``problem`` says why ``text`` is unusable; ``deleted`` means that
    the wiki deleted the text.
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


class _Revision:
    def __init__(self) -> None:
        self.fields: dict[str, str] = {}
        self.pieces: list[str] = []  # of the text; dropped once it is too large
        self.size = 0  # bytes of UTF-8
        self.announced_size = 0
        self.deleted = False

    @property
    def id(self) -> int:
        return _number(self.fields.get("id", "")) or 0

    @property
    def age(self) -> tuple[str, int]:
        """Newer revisions compare greater."""
        return self.fields.get("timestamp", ""), self.id

    @property
    def problem(self) -> str | None:
        if self.id < 1:
            return "its revision has no number"
        if self.size > MAX_TEXT_BYTES:
            return f"its text is larger than {MAX_TEXT_BYTES // 2**20} MiB"
        if self.deleted:
            return "its text was deleted"
        if not self.size and self.announced_size > 0:
            return "the dump has no texts, only their sizes"
        return None


class DumpParser:
    """Turns bytes into pages. The first ``skip`` pages are counted but not returned.

    :meth:`feed` and :meth:`close` raise :class:`DumpError`.
    """

    def __init__(self, skip: int = 0) -> None:
        self.site = SiteInfo()
        self.pages = 0  # complete so far
        self.last_title = ""
        self._skip = skip
        self._ready: list[DumpPage] = []
        self._path: tuple[str, ...] = ()
        self._names: set[str] = set()
        self._field: list[str] | None = None  # pieces of the open field
        self._field_size = 0
        self._namespace_key = ""
        self._page: dict[str, str] = {}
        self._revision = _Revision()
        self._newest: _Revision | None = None
        self._in_text = False
        self._unreported = 0  # bytes since expat's last event
        # No interning: its table would grow with every name in a hostile file.
        self._parser = expat.ParserCreate(intern=None)
        self._parser.buffer_text = True
        self._parser.buffer_size = _BUFFER_BYTES
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.CommentHandler = self._ignore
        self._parser.ProcessingInstructionHandler = self._ignore

    def feed(self, data: bytes) -> list[DumpPage]:
        """The pages that end within ``data``."""
        self._unreported += len(data)
        try:
            self._parser.Parse(data, False)
        except expat.ExpatError as error:
            raise self._damaged(error) from None
        if self._unreported > _MAX_TOKEN_BYTES + _BUFFER_BYTES + len(data):
            raise DumpError(
                f"a tag or comment is larger than 1 MiB {self._where()}: this is not a MediaWiki export"
            )
        return self.take()

    def take(self) -> list[DumpPage]:
        """The pages that were complete before :meth:`feed` raised."""
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> None:
        """Check that the export is complete."""
        try:
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise self._damaged(error) from None

    def truncated(self) -> DumpError:
        return DumpError(
            f"the file ends early, {self._where()}: it was cut off or is still being written",
            code="truncated_dump",
        )

    def _where(self) -> str:
        if not self.pages:
            return "before the first page"
        return f"after {self.pages} page{'s' * (self.pages != 1)}, the last one `{self.last_title}`"

    def _damaged(self, error: expat.ExpatError) -> DumpError:
        if error.code in _ENDED_EARLY:
            if not self._names:
                return DumpError("this is not XML: it has no element", code="not_xml")
            return self.truncated()
        what = f"line {error.lineno}: {expat.errors.messages[error.code]}"
        if not self._names:
            return DumpError(
                f"this is not XML ({what}); hearth reads MediaWiki XML exports and folders", code="not_xml"
            )
        return DumpError(f"the XML is damaged {self._where()} ({what})")

    def _doctype(self, name: str, *_: object) -> None:
        if name.lower() == "html":
            raise DumpError("this is a web page, not a MediaWiki XML export", code="not_a_dump")
        raise DumpError("the file has a document type declaration, which no MediaWiki export has: refused")

    def _ignore(self, *_: object) -> None:
        self._unreported = 0

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._unreported = 0
        path = self._path = (*self._path, name)
        if len(path) == 1 and path != _ROOT:
            raise DumpError(
                f"this is XML, but not a MediaWiki export: it begins with <{name[:40]}>", code="not_a_dump"
            )
        self._names.update((name, *attributes))
        if len(path) > _MAX_DEPTH:
            raise DumpError(f"elements are nested deeper than in a MediaWiki export {self._where()}: refused")
        if len(self._names) > _MAX_NAMES:
            raise DumpError(
                f"the file has more kinds of elements than a MediaWiki export {self._where()}: refused"
            )
        if path == _PAGE:
            self._page, self._newest = {}, None
        elif path == _REVISION:
            self._revision = _Revision()
        elif path == _TEXT:
            self._revision.announced_size = _number(attributes.get("bytes", "")) or 0
            self._revision.deleted = "deleted" in attributes
            self._in_text = self.pages >= self._skip
        elif path == (*_PAGE, "redirect"):
            self._page["redirect"] = attributes.get("title", "")
        elif path in _FIELDS:
            self._namespace_key = attributes.get("key", "")
            self._field, self._field_size = [], 0

    def _characters(self, data: str) -> None:
        self._unreported = 0
        if self._in_text:
            revision = self._revision
            revision.size += len(data) if data.isascii() else len(data.encode())
            if revision.size <= MAX_TEXT_BYTES:
                revision.pieces.append(data)
            else:
                revision.pieces.clear()
        elif self._field is not None:
            self._field_size += len(data)
            if self._field_size > _MAX_FIELD_CHARACTERS:
                name = self._path[-1][:40]
                raise DumpError(f"<{name}> is longer than {_MAX_FIELD_CHARACTERS} characters {self._where()}")
            self._field.append(data)

    def _end(self, name: str) -> None:
        self._unreported = 0
        path, self._path = self._path, self._path[:-1]
        if path == _PAGE:
            self._end_page()
        elif path == _REVISION:
            if self._newest is None or self._revision.age >= self._newest.age:
                self._newest = self._revision
        elif path == _TEXT:
            self._in_text = False
        elif self._field is not None:
            self._end_field(path, "".join(self._field).strip())
            self._field = None

    def _end_field(self, path: tuple[str, ...], value: str) -> None:
        *parent, name = path
        if path == _NAMESPACE:
            key = _number(self._namespace_key)
            if key is not None and len(self.site.namespaces) < _MAX_NAMESPACES:
                self.site.namespaces[key] = value
        elif path not in _FIELDS:
            return
        elif tuple(parent) == _SITE:
            setattr(self.site, name, value)
        elif tuple(parent) == _PAGE:
            self._page[name] = value
        else:
            self._revision.fields[name] = value

    def _end_page(self) -> None:
        self.pages += 1
        self.last_title = self._page.get("title", "")
        if self.pages <= self._skip:
            return
        revision = self._newest or _Revision()
        problem = "it has no revision" if self._newest is None else revision.problem
        if not self.last_title:
            problem = "it has no title"
        self._ready.append(
            DumpPage(
                number=self.pages,
                title=self.last_title,
                namespace=self._namespace(),
                revision=revision.id,
                model=revision.fields.get("model", ""),
                text="" if problem else "".join(revision.pieces),
                redirect=self._page.get("redirect") or None,
                problem=problem,
                deleted=revision.deleted,
            )
        )

    def _namespace(self) -> int:
        """The page's namespace; exports before version 0.6 have it only as the title's prefix."""
        if (stated := _number(self._page.get("ns", ""))) is not None:
            return stated
        prefix = self.last_title.partition(":")[0].casefold() if ":" in self.last_title else ""
        named = (key for key, name in self.site.namespaces.items() if prefix and name.casefold() == prefix)
        return next(named, 0)


def _number(text: str) -> int | None:
    is_number = len(text) <= 18 and text.isascii() and text.removeprefix("-").isdecimal()
    return int(text) if is_number else None
