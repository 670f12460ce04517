"""Wiki pages as documents to be embedded, and finding pages by what they mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import apsw

from gateway.store.db import Database
from gateway.store.vectors import PageTables
from gateway.store.wiki import vectors as store
from gateway.vectors.queries import Queries
from gateway.vectors.source import Count, Document, EmbeddedText, Vectors
from gateway.wiki.search.pieces import VERSION, pieces
from gateway.wiki.source import SECTIONS, Hits, PageRef


class WikiPages:
    """Wiki pages as a :class:`gateway.vectors.source.DocumentSource`: imported, or fetched from an API."""

    name = "wiki"

    def __init__(self, tables: PageTables) -> None:
        self._tables = tables

    def pending(self, connection: apsw.Connection, after: int, limit: int) -> list[Document]:
        """Pages without vectors, cut into passages."""
        return [
            _document(page) for page in store.pending_pages(connection, self._tables, VERSION, after, limit)
        ]

    def put(self, connection: apsw.Connection, made: Sequence[tuple[Document, Vectors]]) -> None:
        """Store the vectors of pages, each with the section it is of."""
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
        """Pages."""
        return Count(*store.count_embedded(connection, self._tables, VERSION))

    def tidy(self, connection: apsw.Connection) -> bool:
        """Remove vectors of pages that changed or went."""
        return store.sweep_vectors(connection, self._tables)


class Meaning:
    """Finds pages by the vectors of their passages. ``progress`` tells how many pages have theirs, if that is known."""

    def __init__(
        self,
        database: Database,
        queries: Queries,
        tables: PageTables,
        progress: Callable[[], Count | None] = lambda: None,
    ) -> None:
        self._database = database
        self._queries = queries
        self._tables = tables
        self._progress = progress

    async def search(self, term: str, limit: int) -> Hits:
        """Pages with a passage near the term, nearest first; the score is the cosine similarity.

        ``problem`` says so when pages have no vectors that the term's could be compared with. Raises HearthError when
        there is no vector of the term in time.
        """
        if not term.strip() or limit < 1:
            return Hits([])
        pages, passages = await self._database.read(lambda c: store.has_pages_and_passages(c, self._tables))
        if not passages:
            return Hits([], "no page has its vectors yet" if pages else None)
        query = await self._queries.vector(term)
        farthest = self._queries.max_distance
        found = await self._database.read(
            lambda c: store.pages_near(c, self._tables, query.space, query.vector, limit, farthest)
        )
        if found is None:
            self._queries.stale()
            return Hits([], "the embedding model is another one, and all vectors are made again")
        return Hits([PageRef(hit.title, 1.0 - hit.rank) for hit in found], note=self._note())

    def _note(self) -> str | None:
        count = self._progress()
        if count is None or count.done >= count.total:
            return None
        return f"{count.done} of {count.total} pages have their vectors so far"


def _document(page: store.PendingPage) -> Document:
    sections = SECTIONS.decode(page.sections)
    parts = [
        EmbeddedText(
            piece.text, f"{page.title} - {piece.heading}" if piece.heading else page.title, piece.section
        )
        for piece in pieces(sections)
    ]
    return Document(page.id, parts, page)
