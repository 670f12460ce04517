"""Recall the facts that fit a message: by words, and by meaning when an embedding model is configured."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from gateway.base.ranking import fuse
from gateway.store.db import Database
from gateway.store.memory import facts as store
from gateway.store.memory.facts import Fact, Scope, search_facts
from gateway.vectors.queries import Queries, found_near
from gateway.vectors.source import Count, Document, DocumentSource, EmbeddedText, Vectors

# A longer message says too many things for one vector, and for a list of words.
_MOST_CHARACTERS = 2000


class FactDocuments(DocumentSource):
    name = "facts"

    def pending(self, connection: apsw.Connection, after: int, limit: int) -> list[Document]:
        return [
            Document(fact.seq, [EmbeddedText(f"{fact.key.replace('_', ' ')}: {fact.text}")], fact.seq)
            for fact in store.pending_facts(connection, after, limit)
        ]

    def put(self, connection: apsw.Connection, made: Sequence[tuple[Document, Vectors]]) -> None:
        """Store a vector a fact. A fact of several passages, which no API makes, is known by its first one."""
        for document, vectors in made:
            vector = vectors.vectors[0] if vectors.vectors else None
            store.put_fact_vector(connection, document.row, vector, vectors.problem)

    def count(self, connection: apsw.Connection) -> Count:
        return Count(*store.count_fact_vectors(connection))


class Recall:
    def __init__(self, database: Database, queries: Queries | None) -> None:
        self._database = database
        self._queries = queries

    async def search(
        self, owner: str, scopes: Sequence[tuple[Scope, str]], text: str, limit: int
    ) -> list[Fact]:
        """Live facts of these scopes that the text recalls, best first: both rankings fused, or the words alone."""
        asked = text[:_MOST_CHARACTERS]
        by_words = await self._database.read(lambda c: search_facts(c, owner, scopes, asked, limit))
        by_meaning = await found_near(
            self._queries,
            self._database,
            asked,
            owner,
            lambda c, query, far: store.facts_near(c, query.space, owner, scopes, query.vector, limit, far),
        )
        facts = {fact.seq: fact for fact in (*by_words, *by_meaning)}
        ranked = fuse([[fact.seq for fact in ranking] for ranking in (by_words, by_meaning)])
        return [facts[seq] for seq, _ in ranked[:limit]]
