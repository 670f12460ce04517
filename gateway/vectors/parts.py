"""The embedding side of the application put together: nothing of it without an embedding model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from gateway.config.settings import Settings
from gateway.inference.embedder import HostEmbedder, host_settings
from gateway.inference.embedding import Embedder, NoEmbedder
from gateway.models.catalog import ResolvedModel, resolve_embedding_model
from gateway.store.db import Database
from gateway.vectors.indexer import Indexer
from gateway.vectors.queries import Queries
from gateway.vectors.source import DocumentSource


class VectorSearch(Struct, frozen=True):
    """What searches by meaning need: vectors of queries, and somebody who makes those of documents."""

    queries: Queries
    indexer: Indexer

    async def close(self) -> None:
        """Stop both."""
        await self.indexer.close()
        await self.queries.close()


def make_embedder(settings: Settings, beside: Callable[[], Sequence[ResolvedModel]]) -> Embedder:
    """The configured embedder. ``beside`` tells what other hosts have loaded. Raises ConfigurationError."""
    if not settings.embedding.model:
        return NoEmbedder()

    def resolve() -> ResolvedModel:
        model = resolve_embedding_model(settings)
        assert model is not None, "it is configured"
        return model

    return HostEmbedder(resolve, host_settings(settings), beside=beside)


def make_search(
    settings: Settings,
    database: Database,
    embedder: Embedder,
    sources: Sequence[DocumentSource],
    busy: Callable[[], bool],
) -> VectorSearch | None:
    """Searches over ``sources``; None without an embedding model. ``busy``: somebody is being answered."""
    if embedder.model is None:
        return None
    dimensions = embedder.model.dimensions
    indexer = Indexer(database, embedder, sources, dimensions=dimensions, busy=busy)
    queries = Queries(
        embedder,
        dimensions=dimensions,
        min_similarity=settings.embedding.min_similarity,
        timeout_seconds=settings.embedding.search_timeout_seconds,
        on_stale=lambda: indexer.wake(stale=True),
    )
    return VectorSearch(queries, indexer)
