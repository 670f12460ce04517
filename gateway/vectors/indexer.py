"""Makes vectors in the background for whatever has none yet: after a start, an import, a change of the model.

What is done is in the database, so a stop costs at most the group of documents that was being worked on. The work
yields to chats: two models at once would each run at half the speed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

import apsw
import structlog
from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.base.supervised import Supervised, Supervision
from gateway.inference.embedding import Embedder, Embeddings
from gateway.store.db import Database
from gateway.store.vectors import Space, get_space, use_space
from gateway.vectors.group import Group
from gateway.vectors.source import Count, DocumentSource

log = structlog.get_logger(__name__)

POLL_SECONDS = 15.0  # between two looks for new documents; other processes import, too
_DOCUMENTS_AT_ONCE = 16
_LONGEST_WAIT_SECONDS = 600.0  # between two tries with a model that fails: each may load it
_COUNT_SECONDS = 5.0  # between two counts while it works
_YIELD_SECONDS = 10.0  # that a group waits at most for others to be answered
_LOOK_SECONDS = 0.1

IndexState = Literal["idle", "working", "waiting"]


class IndexHealth(Struct, frozen=True):
    """``waiting`` is after a problem. ``counts`` are by source, as of the last look."""

    state: IndexState
    counts: dict[str, Count]
    documents_per_second: float | None
    problem: str | None


class Indexer:
    """One task. ``busy`` tells whether somebody is being answered right now; ``dimensions`` None keeps all."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        sources: Sequence[DocumentSource],
        *,
        dimensions: int | None = None,
        busy: Callable[[], bool] = lambda: False,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._sources = sources
        self._dimensions = dimensions
        self._busy = busy
        self._poll_seconds = poll_seconds
        self._wake = asyncio.Event()
        self._stale = False
        self._settled = asyncio.Event()
        self._task: Supervised | None = None
        self._state: IndexState = "idle"
        self._counts: dict[str, Count] = {}
        self._counted_at = 0.0
        self._begun: tuple[float, int] | None = None  # when this run of work began, and what was done then

    def start(self, supervision: Supervision) -> None:
        """Begin."""
        self._task = supervision.start("vector-indexer", self._run, longest_wait=_LONGEST_WAIT_SECONDS)

    async def close(self) -> None:
        """Stop; what is missing is made after the next start."""
        if self._task is not None:
            await self._task.close()

    async def caught_up(self) -> None:
        """Wait until everything has its vectors, or a problem is in the way."""
        await self._settled.wait()

    def wake(self, *, stale: bool = False) -> None:
        """There may be something new. ``stale``: the model makes other vectors than those that are stored."""
        self._stale = self._stale or stale
        self._wake.set()

    def health(self) -> IndexHealth:
        """How far it is. Touches nothing."""
        speed = None
        if self._begun is not None and (seconds := self._counted_at - self._begun[0]) > 0:
            speed = round((self._done() - self._begun[1]) / seconds, 2)
        failed = self._task if self._task is not None and self._task.state == "restarting" else None
        state: IndexState = self._state if failed is None else "waiting"
        return IndexHealth(state, dict(self._counts), speed, failed.problem if failed is not None else None)

    # ------------------------------------------------------------------------------------- the task

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._pass()
                self._state = "idle"
            finally:
                self._settled.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll_seconds):
                    await self._wake.wait()

    async def _pass(self) -> None:
        """Make everything that is missing."""
        await self._check_space()
        await self._count()
        for source in self._sources:
            while await self._database.write(source.tidy):
                pass
            after = -1
            while (last := await self._group(source, after)) is not None:
                after = last
        if self._begun is not None:
            await self._count()
            log.info("vectors are up to date", documents=self._done())
        self._begun = None

    async def _check_space(self) -> None:
        """Another model may have been configured while nothing is missing: then ask it what its vectors are."""
        identity = await asyncio.to_thread(lambda: self._embedder.identity)
        space = await self._database.read(get_space)
        if space is None or not (self._stale or identity not in ("", space.identity)):
            return
        self._stale = False
        made = await self._embed(["?"], [])
        found = Space(made.space, len(made.vectors[0]) // 4, identity)
        if await self._database.write(lambda c: use_space(c, found)):
            log.info("the embedding model is another one: all vectors are made again")

    async def _group(self, source: DocumentSource, after: int) -> int | None:
        """Work on the next documents; the number of the last one, None when there was nothing to do."""
        documents = await self._database.read(lambda c: source.pending(c, after, _DOCUMENTS_AT_ONCE))
        if not documents:
            # Documents with smaller numbers may have come meanwhile.
            return -1 if after >= 0 and await self._any(source) else None
        self._state = "working"
        self._settled.clear()
        if self._begun is None:
            self._begun = (time.monotonic(), self._done())
        identity = await asyncio.to_thread(lambda: self._embedder.identity)
        group = Group(documents)
        while parts := group.next():
            await self._courtesy()
            try:
                group.made(await self._embed([part.text for part in parts], [part.title for part in parts]))
            except HearthError as error:
                if not group.failed(error):
                    raise
        await self._database.write(lambda c: self._store(c, source, group, identity))
        if time.monotonic() - self._counted_at > _COUNT_SECONDS:
            await self._count()
        return documents[-1].number

    def _store(
        self, connection: apsw.Connection, source: DocumentSource, group: Group, identity: str
    ) -> None:
        """One transaction: the vectors of a group belong to the space that is stored with them."""
        if group.space is not None and use_space(connection, Space(group.space, group.dimensions, identity)):
            log.info("the embedding model is another one: all vectors are made again")
        source.put(connection, group.results())

    async def _any(self, source: DocumentSource) -> bool:
        return bool(await self._database.read(lambda c: source.pending(c, -1, 1)))

    async def _embed(self, texts: list[str | list[int]], titles: list[str]) -> Embeddings:
        return await self._embedder.embed(
            texts,
            kind="document",
            titles=titles,
            lane="background",
            dimensions=self._dimensions,
            request_id="index",
        )

    async def _courtesy(self) -> None:
        """Let those who are being answered finish, but do not wait for ever."""
        for _ in range(round(_YIELD_SECONDS / _LOOK_SECONDS)):
            if not self._busy():
                return
            await asyncio.sleep(_LOOK_SECONDS)

    async def _count(self) -> None:
        self._counts = await self._database.read(
            lambda c: {source.name: source.count(c) for source in self._sources}
        )
        self._counted_at = time.monotonic()

    def _done(self) -> int:
        return sum(count.done for count in self._counts.values())
