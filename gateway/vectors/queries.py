"""Embed queries within a time limit."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

import apsw
import structlog
from msgspec import Struct

from gateway.base.aio import stop
from gateway.base.errors import HearthError, ModelUnavailableError
from gateway.inference.embedding import EmbedCall, Embedder, Embeddings
from gateway.store.db import Database
from gateway.store.vectors import has_vectors

T = TypeVar("T")
log = structlog.get_logger(__name__)

# Requests that timed out but continue, because they may be waiting for the model to start.
_MAX_LATE = 8
# A question's terms, and a chat's last message, are embedded several times in a row.
_CACHE_SIZE = 64


class QueryVector(Struct, frozen=True):
    """A query's vector and the embedding space that it belongs to."""

    vector: bytes
    space: str


class Queries:
    """``on_stale`` is called when the stored vectors belong to another model than the query's.

    ``failures`` counts queries without a vector; ``problem`` is why the last one failed, None after a success.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        dimensions: int | None,
        min_similarity: float,
        timeout_seconds: float,
        on_stale: Callable[[], None],
    ) -> None:
        self._on_stale = on_stale
        self.max_distance = 1.0 - min_similarity  # cosine distance
        self.failures = 0
        self.problem: str | None = None
        self._embedder = embedder
        self._dimensions = dimensions
        self._timeout = timeout_seconds
        self._late: set[asyncio.Task[Embeddings]] = set()
        self._cache: OrderedDict[str, QueryVector] = OrderedDict()

    async def vector(self, text: str, owner: str = "") -> QueryVector:
        """Embed a query. Raises HearthError when that fails or takes longer than the configured time."""
        if (cached := self._cache.get(text)) is not None:
            self._cache.move_to_end(text)
            return cached
        try:
            made = await self._in_time(text, owner)
        except HearthError as error:
            self.failures += 1
            self.problem = error.message
            log.warning("a search does without vectors", problem=error.message)
            raise
        self.problem = None
        vector = self._cache[text] = QueryVector(made.vectors[0], made.space)
        if len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return vector

    def stale(self) -> None:
        """Report that the stored vectors belong to another space than a query's."""
        self._cache.clear()
        self._on_stale()

    async def close(self) -> None:
        """Cancel the requests that timed out."""
        await stop(list(self._late))

    async def _in_time(self, text: str, owner: str) -> Embeddings:
        if len(self._late) >= _MAX_LATE:
            raise ModelUnavailableError("the embedding model is too slow for the searches that wait for it")
        call = EmbedCall(
            [text],
            kind="query",
            lane="retrieval",
            owner=owner,
            dimensions=self._dimensions,
            request_id="query",
        )
        task = asyncio.create_task(self._embedder.embed(call))
        try:
            await asyncio.wait({task}, timeout=self._timeout)
        except asyncio.CancelledError:
            await stop([task])
            raise
        if task.done():
            return task.result()
        self._late.add(task)
        task.add_done_callback(self._on_late_done)
        raise ModelUnavailableError(f"the embedding model made no vector within {self._timeout:g} s")

    def _on_late_done(self, task: asyncio.Task[Embeddings]) -> None:
        self._late.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, HearthError):  # the caller only learned that it timed out
            self.problem = error.message
            log.warning("a late vector could not be made", problem=error.message)
        elif error is not None:
            log.error("a late vector failed unexpectedly", exc_info=error)


async def found_near(
    queries: Queries | None,
    database: Database,
    text: str,
    owner: str,
    search: Callable[[apsw.Connection, QueryVector, float], list[T] | None],
) -> list[T]:
    """What ``search`` finds near the text, with its vector and the greatest distance; nothing if that is not possible.

    ``search`` returns None if the stored vectors are of another space.
    """
    if queries is None or not text.strip() or not await database.read(has_vectors):
        return []
    farthest = queries.max_distance
    with suppress(HearthError):  # which the queries have reported
        query = await queries.vector(text, owner)
        found = await database.read(lambda c: search(c, query, farthest))
        if found is None:
            queries.stale()
        return found or []
    return []
