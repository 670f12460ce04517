"""MediaWiki XML exports (versions 0.3 to 0.11), parsed as the bytes arrive.

A dump is somebody else's file and may be of any size. Memory is bounded by two revisions of a page: nothing else is
kept, and everything that could grow (depth, names, unfinished tags, text) has a limit. A document type declaration,
and with it every entity that could expand, is refused; no export has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.parsers import expat

from gateway.wiki.dumps.page import MAX_TEXT_BYTES, DumpError, DumpPage, Revision, SiteInfo, is_number, number

_MAX_FIELD_CHARACTERS = 4096  # of a title (MediaWiki: 255 bytes), a timestamp, a number
_MAX_DEPTH = 16
_MAX_NAMES = 512  # different elements and attributes; expat remembers each one
_MAX_NAMESPACES = 1000
_MAX_TOKEN_BYTES = 1024 * 1024  # of one tag or comment: expat keeps it until it has its end
_BUFFER_BYTES = 256 * 1024

_ROOT = "mediawiki"
_SITE = ("mediawiki", "siteinfo")
_PAGE = ("mediawiki", "page")
_REVISION = (*_PAGE, "revision")
_SITE_FIELDS = {"sitename", "dbname", "base"}
_PAGE_FIELDS = {"title", "ns"}
_REVISION_FIELDS = {"id", "timestamp", "model"}
_NAMESPACE = (*_SITE, "namespaces", "namespace")
_ENDED_EARLY = {
    expat.errors.codes[message]
    for message in (
        expat.errors.XML_ERROR_NO_ELEMENTS,
        expat.errors.XML_ERROR_UNCLOSED_TOKEN,
        expat.errors.XML_ERROR_PARTIAL_CHAR,
        expat.errors.XML_ERROR_UNCLOSED_CDATA_SECTION,
    )
}


class DumpParser:
    """Bytes in, pages out. ``skip`` pages at the beginning are counted and not handed out.

    Both methods raise :class:`DumpError`.
    """

    def __init__(self, skip: int = 0) -> None:
        self.site = SiteInfo()
        self.pages = 0  # that have ended so far
        self.last_title = ""
        self.complete = False  # the end of the export has been read
        self._skip = skip
        self._ready: list[DumpPage] = []
        self._path: list[str] = []
        self._names: set[str] = set()
        self._field: list[str] | None = None  # pieces of the short field being read
        self._field_size = 0
        self._key = ""
        self._page: dict[str, str] = {}
        self._best: Revision | None = None
        self._revision: Revision | None = None
        self._in_text = False
        self._silent = 0  # bytes since expat last told of anything
        # No interning: its table would grow with every name that a hostile file invents.
        self._parser = expat.ParserCreate(intern=None)
        self._parser.buffer_text = True
        self._parser.buffer_size = _BUFFER_BYTES
        self._parser.ordered_attributes = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.CommentHandler = self._heard
        self._parser.ProcessingInstructionHandler = self._heard

    def feed(self, data: bytes) -> list[DumpPage]:
        """The pages that end within ``data``."""
        self._silent += len(data)
        try:
            self._parser.Parse(data, False)
        except expat.ExpatError as error:
            raise self._damaged(error) from None
        if self._silent > _MAX_TOKEN_BYTES + _BUFFER_BYTES + len(data):
            raise DumpError(
                f"a tag or comment is larger than 1 MiB {self.where()}: this is no MediaWiki export"
            )
        ready, self._ready = self._ready, []
        return ready

    def close(self) -> None:
        """There are no more bytes: the export must be complete."""
        try:
            self._parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise self._damaged(error) from None

    def take(self) -> list[DumpPage]:
        """The pages that were complete before :meth:`feed` raised."""
        ready, self._ready = self._ready, []
        return ready

    def where(self) -> str:
        """How far the parser has come, in words."""
        if not self.pages:
            return "before the first page"
        return f"after {self.pages} page{'s' * (self.pages != 1)}, the last one `{self.last_title}`"

    def _damaged(self, error: expat.ExpatError) -> DumpError:
        if error.code in _ENDED_EARLY:
            if not self._names:
                return DumpError("this is no XML: it has no element", code="not_xml")
            return self.truncated()
        what = f"line {error.lineno}: {expat.errors.messages[error.code]}"
        if not self._names:
            return DumpError(f"this is no XML ({what}); hearth reads MediaWiki XML exports", code="not_xml")
        return DumpError(f"the XML is damaged {self.where()} ({what})")

    def truncated(self) -> DumpError:
        """The error for a file that ends too early."""
        return DumpError(
            f"the file ends early, {self.where()}: it was cut off or is still being written",
            code="truncated_dump",
        )

    def _doctype(self, name: str, *_: object) -> None:
        if name.lower() == "html":
            raise DumpError("this is a web page, no MediaWiki XML export", code="not_a_dump")
        raise DumpError("it has a document type declaration, which no MediaWiki export has: refused")

    def _heard(self, *_: object) -> None:
        self._silent = 0

    def _start(self, name: str, attributes: Sequence[str]) -> None:
        self._silent = 0
        if not self._path and name != _ROOT:
            raise DumpError(
                f"this is XML, but no MediaWiki export: it begins with <{name[:40]}>", code="not_a_dump"
            )
        self._path.append(name)
        self._names.update((name, *attributes[::2]))
        if len(self._path) > _MAX_DEPTH:
            raise DumpError(
                f"elements are nested deeper than in any MediaWiki export {self.where()}: refused"
            )
        if len(self._names) > _MAX_NAMES:
            raise DumpError(
                f"it has more kinds of elements than any MediaWiki export {self.where()}: refused"
            )
        parent = tuple(self._path[:-1])
        if parent == _REVISION:
            self._start_in_revision(name, dict(zip(attributes[::2], attributes[1::2], strict=True)))
        elif parent == _PAGE:
            self._start_in_page(name, attributes)
        elif parent == _SITE and name in _SITE_FIELDS:
            self._begin_field()
        elif tuple(self._path) == _NAMESPACE:
            self._key = dict(zip(attributes[::2], attributes[1::2], strict=True)).get("key", "")
            self._begin_field()
        elif tuple(self._path) == _PAGE:
            self._page, self._best = {}, None

    def _start_in_page(self, name: str, attributes: Sequence[str]) -> None:
        if name == "revision":
            self._revision = Revision()
        elif name == "redirect":
            self._page["redirect"] = dict(zip(attributes[::2], attributes[1::2], strict=True)).get(
                "title", ""
            )
        elif name in _PAGE_FIELDS:
            self._begin_field()

    def _start_in_revision(self, name: str, attributes: dict[str, str]) -> None:
        assert self._revision is not None
        if name == "text":
            self._revision.announced = number(attributes.get("bytes", ""))
            self._revision.deleted = "deleted" in attributes
            self._in_text = self.pages >= self._skip
        elif name in _REVISION_FIELDS:
            self._begin_field()

    def _begin_field(self) -> None:
        self._field, self._field_size = [], 0

    def _characters(self, data: str) -> None:
        self._silent = 0
        if self._in_text:
            revision = self._revision
            assert revision is not None
            revision.size += len(data) if data.isascii() else len(data.encode())
            if revision.size <= MAX_TEXT_BYTES:
                revision.pieces.append(data)
            else:
                revision.pieces.clear()
        elif self._field is not None:
            self._field_size += len(data)
            if self._field_size > _MAX_FIELD_CHARACTERS:
                raise DumpError(
                    f"<{self._path[-1][:40]}> is longer than {_MAX_FIELD_CHARACTERS} characters {self.where()}"
                )
            self._field.append(data)

    def _end(self, name: str) -> None:
        self._silent = 0
        path = tuple(self._path)
        self._path.pop()
        if path == _PAGE:
            self._end_page()
        elif path == _REVISION:
            self._end_revision()
        elif path == (*_REVISION, "text"):
            self._in_text = False
        elif path == (_ROOT,):
            self.complete = True
        elif self._field is not None:
            self._end_field(path, "".join(self._field).strip())
            self._field = None

    def _end_field(self, path: tuple[str, ...], value: str) -> None:
        if path == _NAMESPACE:
            if is_number(self._key) and len(self.site.namespaces) < _MAX_NAMESPACES:
                self.site.namespaces[int(self._key)] = value
        elif path[:-1] == _SITE:
            setattr(self.site, path[-1], value)
        elif path[:-1] == _PAGE:
            self._page[path[-1]] = value
        elif path[:-1] == _REVISION and self._revision is not None:
            self._revision.fields[path[-1]] = value

    def _end_revision(self) -> None:
        done, self._revision = self._revision, None
        if done is not None and (self._best is None or done.age >= self._best.age):
            self._best = done

    def _end_page(self) -> None:
        self.pages += 1
        self.last_title = self._page.get("title", "")
        revision, self._best = self._best, None
        if self.pages <= self._skip:
            return
        problem = "it has no revision" if revision is None else revision.problem
        if not self.last_title:
            problem = "it has no title"
        self._ready.append(
            DumpPage(
                number=self.pages,
                title=self.last_title,
                namespace=self._namespace(),
                revision=0 if revision is None else number(revision.fields.get("id", "")),
                model="" if revision is None else revision.fields.get("model", ""),
                text="" if revision is None or problem else "".join(revision.pieces),
                redirect=self._page.get("redirect") or None,
                problem=problem,
                deleted=revision is not None and revision.deleted,
            )
        )

    def _namespace(self) -> int:
        """Its number; exports before version 0.6 tell it only by the title's prefix."""
        if is_number(stated := self._page.get("ns", "")):
            return int(stated)
        prefix, colon, _ = self.last_title.partition(":")
        if colon and prefix:
            for number, name in self.site.namespaces.items():
                if name.casefold() == prefix.casefold():
                    return number
        return 0
