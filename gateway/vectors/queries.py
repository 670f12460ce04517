"""Vectors of queries: in time, or a search does without."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

import structlog
from msgspec import Struct

from gateway.base.aio import stop
from gateway.base.errors import HearthError, ModelUnavailableError
from gateway.inference.embedding import Embedder, Embeddings

log = structlog.get_logger(__name__)

# Vectors that nobody waits for any more. They go on, because they may be waiting for the model to start.
_LATE_AT_ONCE = 8
# A question's terms, and a chat's last message, are asked for several times in a row.
_KEPT = 64


class QueryVector(Struct, frozen=True):
    """A query's vector and the space that it can be compared in."""

    vector: bytes
    space: str


class Queries:
    """Makes them. ``on_stale`` is told when the stored vectors turn out to be of another model than the query's.

    ``failures`` counts queries that went without, ``problem`` is why the last one did, None once one succeeds.
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
        self._known: OrderedDict[str, QueryVector] = OrderedDict()

    async def vector(self, text: str, owner: str = "") -> QueryVector:
        """The vector of a query. Raises HearthError when there is none within the configured time."""
        if (known := self._known.get(text)) is not None:
            self._known.move_to_end(text)
            return known
        try:
            made = await self._in_time(text, owner)
        except HearthError as error:
            self.failures += 1
            self.problem = error.message
            log.warning("a search does without vectors", problem=error.message)
            raise
        self.problem = None
        vector = self._known[text] = QueryVector(made.vectors[0], made.space)
        if len(self._known) > _KEPT:
            self._known.popitem(last=False)
        return vector

    def stale(self) -> None:
        """The stored vectors are not of the space that a query had."""
        self._known.clear()
        self._on_stale()

    async def close(self) -> None:
        """Stop what nobody waits for."""
        await stop(list(self._late))

    async def _in_time(self, text: str, owner: str) -> Embeddings:
        if len(self._late) >= _LATE_AT_ONCE:
            raise ModelUnavailableError("the embedding model is too slow for the searches that wait for it")
        work = self._embedder.embed(
            [text],
            kind="query",
            lane="retrieval",
            owner=owner,
            dimensions=self._dimensions,
            request_id="query",
        )
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task}, timeout=self._timeout)
        except asyncio.CancelledError:
            await stop([task])
            raise
        if task.done():
            return task.result()
        self._late.add(task)
        task.add_done_callback(self._ended)
        raise ModelUnavailableError(f"the embedding model made no vector within {self._timeout:g} s")

    def _ended(self, task: asyncio.Task[Embeddings]) -> None:
        self._late.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, HearthError):  # whoever asked was told that it took too long, not why
            self.problem = error.message
            log.warning("a late vector could not be made", problem=error.message)
        elif error is not None:
            log.error("a late vector failed unexpectedly", exc_info=error)
