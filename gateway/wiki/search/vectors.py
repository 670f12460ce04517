"""Embedding of wiki pages, and search for pages by meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import apsw

from gateway.store.db import Database
from gateway.store.vectors import PageTables
from gateway.store.wiki import vectors as store
from gateway.vectors.queries import Queries
from gateway.vectors.source import Count, Document, EmbeddedText, Vectors
from gateway.wiki.source import SECTIONS, Hits, PageRef, Section

# Increment when the passages change: pages that another version split get new vectors.
VERSION = 1
# Of a passage: about 250 tokens of English, well within the context of embedding models.
MOST_CHARACTERS = 1000


class WikiPages:
    """A :class:`gateway.vectors.source.DocumentSource` of pages, imported or fetched from an API."""

    name = "wiki"

    def __init__(self, tables: PageTables) -> None:
        self._tables = tables

    def pending(self, connection: apsw.Connection, after: int, limit: int) -> list[Document]:
        pages = store.pending_pages(connection, self._tables, VERSION, after, limit)
        return [
            Document(page.id, passages(page.title, SECTIONS.decode(page.sections)), page) for page in pages
        ]

    def put(self, connection: apsw.Connection, made: Sequence[tuple[Document, Vectors]]) -> None:
        for document, vectors in made:
            store.put_page_vectors(
                connection,
                self._tables,
                document.row,
                VERSION,
                vectors.marks,
                vectors.vectors,
                vectors.problem,
            )

    def count(self, connection: apsw.Connection) -> Count:
        return Count(*store.count_embedded(connection, self._tables, VERSION))

    def tidy(self, connection: apsw.Connection) -> bool:
        return store.sweep_vectors(connection, self._tables)


@dataclass(frozen=True)
class Meaning:
    """Finds pages by the vectors of their passages. ``progress`` counts embedded pages, None if unknown."""

    database: Database
    queries: Queries
    tables: PageTables
    progress: Callable[[], Count | None] = lambda: None

    async def search(self, term: str, limit: int) -> Hits:
        """Pages with a passage near the term, nearest first, scored by cosine similarity.

        ``problem`` reports that no page has a comparable vector. Raises HearthError when the term cannot be embedded
        in time.
        """
        if not term.strip() or limit < 1:
            return Hits([])
        pages, passages = await self.database.read(lambda c: store.has_pages_and_passages(c, self.tables))
        if not passages:
            return Hits([], "no page has its vectors yet" if pages else None)
        query = await self.queries.vector(term)
        farthest = self.queries.max_distance
        found = await self.database.read(
            lambda c: store.pages_near(c, self.tables, query.space, query.vector, limit, farthest)
        )
        if found is None:
            self.queries.stale()
            return Hits([], "the embedding model changed, and all vectors are made again")
        return Hits([PageRef(hit.title, 1.0 - hit.rank, hit.section) for hit in found], note=self._note())

    def _note(self) -> str | None:
        count = self.progress()
        if count is None or count.done >= count.total:
            return None
        return f"{count.done} of {count.total} pages have their vectors so far"


def passages(title: str, sections: Sequence[Section]) -> list[EmbeddedText]:
    """Split a page into passages; the mark of each is the index of its section."""
    return [
        EmbeddedText(text, f"{title} - {section.heading}" if section.heading else title, index)
        for index, section in enumerate(sections)
        for text in _packed(section.text)
    ]


def _packed(text: str) -> Iterator[str]:
    """Join paragraphs up to the limit and split longer ones."""
    current: list[str] = []
    size = 0
    for paragraph in text.split("\n\n"):
        for part in cut(paragraph.strip("\n"), MOST_CHARACTERS):
            if current and size + len(part) > MOST_CHARACTERS:
                yield "\n\n".join(current)
                current, size = [], 0
            current.append(part)
            size += len(part) + 2
    if current:
        yield "\n\n".join(current)


def cut(text: str, size: int) -> Iterator[str]:
    """Parts of at most ``size`` characters, each ending at a line, sentence or word, in this order, if its second half
    has one."""
    rest = text
    while len(rest) > size:
        ends = (rest.rfind(mark, size // 2, size) + len(mark) for mark in ("\n", ". ", " "))
        end = next((end for end in ends if end > size // 2), size)
        if part := rest[:end].strip():
            yield part
        rest = rest[end:]
    if part := rest.strip():
        yield part
