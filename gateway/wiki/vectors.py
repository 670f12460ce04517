"""Wiki pages as documents to be embedded, and finding pages by what they mean."""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import msgspec

from gateway.store import wiki_vectors as store
from gateway.store.db import Database
from gateway.store.vectors import has_vectors
from gateway.vectors.queries import Queries
from gateway.vectors.source import Count, Document, Part, Vectors
from gateway.wiki.pieces import VERSION, pieces
from gateway.wiki.source import PageRef, Section


class WikiPages:
    """The :class:`gateway.vectors.source.Source` of wiki pages."""

    name = "wiki"

    def pending(self, connection: apsw.Connection, after: int, limit: int) -> list[Document]:
        """Pages without vectors, cut into passages."""
        return [_document(page) for page in store.pending_pages(connection, VERSION, after, limit)]

    def put(self, connection: apsw.Connection, made: Sequence[tuple[Document, Vectors]]) -> None:
        """Store the vectors of pages, each with the section it is of."""
        for document, vectors in made:
            store.put_page_vectors(
                connection, document.row, VERSION, vectors.marks, vectors.vectors, vectors.problem
            )

    def count(self, connection: apsw.Connection) -> Count:
        """Pages."""
        return Count(*store.count_embedded(connection, VERSION))

    def tidy(self, connection: apsw.Connection) -> bool:
        """Remove vectors of pages that changed or went."""
        return store.sweep_vectors(connection)


class Meaning:
    """Finds pages by the vectors of their passages."""

    def __init__(self, database: Database, queries: Queries) -> None:
        self._database = database
        self._queries = queries

    async def search(self, term: str, limit: int) -> list[PageRef]:
        """Pages with a passage near the term, nearest first; the score is the cosine similarity.

        Raises HearthError when there is no vector in time."""
        if not term.strip() or limit < 1 or not await self._database.read(has_vectors):
            return []
        query = await self._queries.vector(term)
        farthest = self._queries.max_distance
        found = await self._database.read(
            lambda c: store.pages_near(c, query.space, query.vector, limit, farthest)
        )
        if found is None:
            self._queries.stale()
            return []
        return [PageRef(hit.title, 1.0 - hit.rank) for hit in found]


def _document(page: store.PendingPage) -> Document:
    sections = msgspec.json.decode(page.sections, type=list[Section])
    parts = [
        Part(piece.text, f"{page.title} - {piece.heading}" if piece.heading else page.title, piece.section)
        for piece in pieces(sections)
    ]
    return Document(page.id, parts, page)
