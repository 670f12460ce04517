"""Wiring of the embedding model, the indexer, the queries and the reranker; all optional."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from gateway.config.settings import Settings
from gateway.inference.embedder import HostEmbedder, HostReranker, OnEmbedded, host_settings
from gateway.inference.embedding import Embedder, Reranker
from gateway.models.catalog import ResolvedModel, resolve_embedding_model, resolve_reranker
from gateway.store.db import Database
from gateway.vectors.indexer import Indexer
from gateway.vectors.queries import Queries
from gateway.vectors.source import DocumentSource


class VectorSearch(Struct, frozen=True):
    """Parts of a search by meaning: vectors of queries, and an indexer for those of documents."""

    queries: Queries
    indexer: Indexer

    async def close(self) -> None:
        await self.indexer.close()
        await self.queries.close()


def make_embedder(
    settings: Settings,
    beside: Callable[[], Sequence[ResolvedModel]] = tuple,
    on_embedded: OnEmbedded = lambda *_: None,
) -> Embedder:
    """The configured embedder. ``beside`` returns the models loaded by other hosts. Raises ConfigurationError."""
    if not settings.embedding.model:
        return Embedder()
    if settings.upstream.embedding_urls:
        # Late, because servers with local models do not need it.
        from gateway.inference.upstream.embedding import UpstreamEmbedder

        return UpstreamEmbedder(settings, on_embedded)
    resolve = partial(resolve_embedding_model, settings)
    host = host_settings(settings, settings.embedding)
    return HostEmbedder(resolve, host, beside=beside, on_embedded=on_embedded)


def make_reranker(settings: Settings, beside: Callable[[], Sequence[ResolvedModel]] = tuple) -> Reranker:
    """As :func:`make_embedder` for the reranker."""
    if not settings.rerank.model:
        return Reranker()
    if settings.upstream.rerank_urls:
        # Late, as above.
        from gateway.inference.upstream.embedding import UpstreamReranker

        return UpstreamReranker(settings)
    return HostReranker(
        partial(resolve_reranker, settings), host_settings(settings, settings.rerank), beside=beside
    )


def make_search(
    settings: Settings,
    database: Database,
    embedder: Embedder,
    sources: Sequence[DocumentSource],
    busy: Callable[[], bool],
) -> VectorSearch | None:
    """Vector search over ``sources``; None without an embedding model. ``busy`` returns whether a chat is running."""
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
