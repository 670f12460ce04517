"""Search for definitions and sections of documents by meaning, where an embedding model is configured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import apsw

from gateway.code.parts import is_test
from gateway.code.source import lines_of
from gateway.store.code import vectors as store
from gateway.store.code.graph import Hit
from gateway.store.db import Database
from gateway.vectors.queries import Queries, found_near
from gateway.vectors.source import Count, Document, EmbeddedText, Vectors

_MOST_CHARACTERS = 1000  # of a section or docstring: what it is about is said first


class CodeDocuments:
    """The :class:`gateway.vectors.source.DocumentSource` of projects. Tests get no vectors."""

    name = "code"

    def pending(self, connection: apsw.Connection, after: int, limit: int) -> list[Document]:
        return [_document(part) for part in store.pending_parts(connection, after, limit)]

    def put(self, connection: apsw.Connection, made: Sequence[tuple[Document, Vectors]]) -> None:
        """Store a vector a part: of one too long for the model, that of its beginning."""
        for document, vectors in made:
            vector = vectors.vectors[0] if vectors.vectors else None
            store.put_part_vector(connection, document.row, vector, vectors.problem)

    def count(self, connection: apsw.Connection) -> Count:
        return Count(*store.count_part_vectors(connection))

    def tidy(self, connection: apsw.Connection) -> bool:
        """Vectors go with their parts."""
        return False


def _document(part: store.PendingPart) -> Document:
    """A definition's name, signature and docstring, or a section's text."""
    if part.is_code:
        text = f"{part.signature}\n{part.doc}".strip()
    else:
        text = "\n".join(lines_of(Path(part.root), part.path, part.line, part.end_line)).strip()
    if not text or (part.is_code and is_test(part.path)):
        return Document(part.id, [], part)
    return Document(part.id, [EmbeddedText(text[:_MOST_CHARACTERS], part.title)], part)


class Nearness:
    """Finds parts of a project by meaning; nothing without ``queries``."""

    def __init__(self, database: Database, queries: Queries | None) -> None:
        self._database, self._queries = database, queries

    async def hits(self, project: str, text: str, limit: int, owner: str = "") -> list[Hit]:
        """Parts near the text, nearest first; none when its vector cannot be made in time."""
        return await found_near(
            self._queries,
            self._database,
            text,
            owner,
            lambda c, query, far: store.parts_near(c, project, query.space, query.vector, limit, far),
        )
