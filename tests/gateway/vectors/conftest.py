"""Fixtures: documents in a list and their indexer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import apsw
import pytest

from gateway.base.supervised import Supervision
from gateway.store.db import Database
from gateway.vectors.indexer import Indexer
from gateway.vectors.source import Count, Document, EmbeddedText, Vectors
from tests.gateway.vectors.words import WordEmbedder


class Listed:
    """A source of texts by number; ``made`` is where their vectors go."""

    name = "listed"

    def __init__(self, texts: dict[int, list[str]]) -> None:
        self.texts = texts
        self.made: dict[int, Vectors] = {}
        self.tidied = 0

    def pending(self, connection: apsw.Connection, after: int, limit: int) -> list[Document]:
        missing = [n for n in sorted(self.texts) if n > after and n not in self.made]
        return [
            Document(n, [EmbeddedText(text, mark=mark) for mark, text in enumerate(self.texts[n])], n)
            for n in missing[:limit]
        ]

    def put(self, connection: apsw.Connection, made: Sequence[tuple[Document, Vectors]]) -> None:
        self.made |= {document.number: vectors for document, vectors in made}

    def count(self, connection: apsw.Connection) -> Count:
        failed = sum(vectors.problem is not None for vectors in self.made.values())
        return Count(len(self.made), failed, len(self.texts))

    def tidy(self, connection: apsw.Connection) -> bool:
        self.tidied += 1
        return self.tidied % 3 != 0


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


MakeIndexer = Callable[..., Indexer]


@pytest.fixture
async def make_indexer(database: Database, embedder: WordEmbedder) -> AsyncIterator[MakeIndexer]:
    """Running indexers, closed at the end."""
    running: list[Indexer] = []

    def make(*sources: Any, **options: Any) -> Indexer:
        indexer = Indexer(database, embedder, sources, **({"poll_seconds": 0.02} | options))
        indexer.start(Supervision())
        running.append(indexer)
        return indexer

    yield make
    for indexer in running:
        await indexer.close()
