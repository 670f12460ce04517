"""Embed documents in the background: after a start, after an import, and after the embedding model changed.

Progress is in the database, so a stop costs at most the group of documents in progress. Chats go first: two models
running at once would each run at half the speed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Literal

import apsw
import structlog
from msgspec import Struct

from gateway.base.errors import HearthError, InvalidRequestError, ModelUnavailableError, PromptTooLongError
from gateway.base.supervised import Supervised, Supervision
from gateway.inference.embedding import EmbedCall, Embedder, Embeddings
from gateway.store.db import Database
from gateway.store.vectors import Space, get_space, use_space
from gateway.vectors.source import Count, Document, DocumentSource, EmbeddedText, Vectors

log = structlog.get_logger(__name__)

POLL_SECONDS = 15.0  # interval of looking for new documents; other processes import, too
_DOCUMENTS_AT_ONCE = 16
_PARTS_AT_ONCE = 16
_MAX_RETRY_SECONDS = 600.0  # each retry with a failing model may load it
_COUNT_SECONDS = 5.0  # interval of counting while working
_YIELD_SECONDS = 10.0  # how long a request waits at most for chats to finish
_LOOK_SECONDS = 0.1

IndexState = Literal["idle", "working", "waiting"]
Embed = Callable[[list[EmbeddedText]], Awaitable[Embeddings]]
_Part = tuple[int, EmbeddedText]  # index of the document, and one of its texts


class IndexHealth(Struct, frozen=True):
    """``waiting`` means backing off after ``problem``. ``counts`` are by source, as of the last count."""

    state: IndexState
    counts: dict[str, Count]
    documents_per_second: float | None
    problem: str | None


class Indexer:
    """One background task. ``busy`` returns whether a chat is running; ``dimensions`` None keeps all dimensions."""

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
        # The time, and how many documents were done, when this run of work started.
        self._started: tuple[float, int] | None = None

    def start(self, supervision: Supervision) -> None:
        self._task = supervision.start("vector-indexer", self._run, longest_wait=_MAX_RETRY_SECONDS)

    async def close(self) -> None:
        """Stop; the next start continues."""
        if self._task is not None:
            await self._task.close()

    async def caught_up(self) -> None:
        """Wait until every document has its vectors or a problem is in the way."""
        await self._settled.wait()

    def wake(self, *, stale: bool = False) -> None:
        """Look for new documents now. ``stale``: the stored vectors are from another model."""
        self._stale = self._stale or stale
        self._wake.set()

    def health(self) -> IndexHealth:
        speed = None
        if self._started is not None and (seconds := self._counted_at - self._started[0]) > 0:
            speed = round((self._done() - self._started[1]) / seconds, 2)
        if self._task is not None and self._task.state == "restarting":
            return IndexHealth("waiting", dict(self._counts), speed, self._task.problem)
        return IndexHealth(self._state, dict(self._counts), speed, None)

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._index_all()
                self._state = "idle"
            finally:
                self._settled.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll_seconds):
                    await self._wake.wait()

    async def _index_all(self) -> None:
        await self._check_space()
        await self._count()
        for source in self._sources:
            while await self._database.write(source.tidy):
                pass
            after: int | None = -1
            while after is not None:
                after = await self._index_next(source, after)
        if self._started is not None:
            await self._count()
            log.info("vectors are up to date", documents=self._done())
        self._started = None

    async def _check_space(self) -> None:
        """Ask a newly configured model for its space: with no document pending, nothing else would notice it."""
        identity = await asyncio.to_thread(lambda: self._embedder.identity)
        space = await self._database.read(get_space)
        if space is None or not (self._stale or identity not in ("", space.identity)):
            return
        self._stale = False
        made = await self._embed([EmbeddedText("?")])
        found = Space(made.space, len(made.vectors[0]) // 4, identity)
        await self._database.write(lambda c: _use_space(c, found))

    async def _index_next(self, source: DocumentSource, after: int) -> int | None:
        """Embed the documents after number ``after``. Return the number of the last one, or None if none is pending."""
        documents = await self._database.read(lambda c: source.pending(c, after, _DOCUMENTS_AT_ONCE))
        if not documents:
            # Documents with smaller numbers may have been added meanwhile.
            added = after >= 0 and await self._database.read(lambda c: bool(source.pending(c, -1, 1)))
            return -1 if added else None
        self._state = "working"
        self._settled.clear()
        if self._started is None:
            self._started = (time.monotonic(), self._done())
        identity = await asyncio.to_thread(lambda: self._embedder.identity)
        group = Group(documents, self._embed_politely)
        results = await group.run()

        def store(connection: apsw.Connection) -> None:
            # One transaction: the vectors belong to the space that is stored with them.
            if group.space is not None:
                _use_space(connection, Space(group.space, group.dimensions, identity))
            source.put(connection, results)

        await self._database.write(store)
        if time.monotonic() - self._counted_at > _COUNT_SECONDS:
            await self._count()
        return documents[-1].number

    async def _embed_politely(self, parts: list[EmbeddedText]) -> Embeddings:
        """Embed once no chat is running, or after a limited wait."""
        for _ in range(round(_YIELD_SECONDS / _LOOK_SECONDS)):
            if not self._busy():
                break
            await asyncio.sleep(_LOOK_SECONDS)
        return await self._embed(parts)

    async def _embed(self, parts: list[EmbeddedText]) -> Embeddings:
        call = EmbedCall(
            [part.text for part in parts],
            kind="document",
            titles=[part.title for part in parts],
            lane="background",
            dimensions=self._dimensions,
            request_id="index",
        )
        return await self._embedder.embed(call)

    async def _count(self) -> None:
        self._counts = await self._database.read(
            lambda c: {source.name: source.count(c) for source in self._sources}
        )
        self._counted_at = time.monotonic()

    def _done(self) -> int:
        return sum(count.done for count in self._counts.values())


def _use_space(connection: apsw.Connection, space: Space) -> None:
    if use_space(connection, space):
        log.info("the embedding model changed: all vectors are made again")


class Group:
    """The vectors of ``documents``. ``space`` is None when no text was embedded."""

    def __init__(self, documents: Sequence[Document], embed: Embed) -> None:
        self._documents = documents
        self._embed = embed
        self._reset()

    def _reset(self) -> None:
        self.space: str | None = None
        self.dimensions = 0
        self._vectors: list[list[tuple[int, bytes]]] = [[] for _ in self._documents]
        self._problems: dict[int, str] = {}

    async def run(self) -> list[tuple[Document, Vectors]]:
        """Embed every text and start over when the model changes meanwhile.

        A text that is too long is split; a document with a text that cannot be embedded gets no vectors. Raises
        HearthError when the model cannot run or the settings are wrong.
        """
        parts = [(index, part) for index, document in enumerate(self._documents) for part in document.parts]
        at = 0
        while at < len(parts):
            if await self._run(parts[at : at + _PARTS_AT_ONCE]):
                at += _PARTS_AT_ONCE
            else:
                self._reset()
                at = 0
        return [(document, self._result(index)) for index, document in enumerate(self._documents)]

    async def _run(self, parts: list[_Part]) -> bool:
        """Whether the vectors are in the same space as those before them."""
        parts = [part for part in parts if part[0] not in self._problems]
        if not parts:
            return True
        try:
            embeddings = await self._embed([part for _, part in parts])
        except PromptTooLongError as error:
            at = int(error.details.get("index", 0))
            index, part = parts[at]
            halves = [(index, half) for half in part.halves()]
            if len(halves) < 2:
                self._problems[index] = error.message
            return all([await self._run(some) for some in (parts[:at], halves, parts[at + 1 :])])
        except HearthError as error:
            if not _is_fault_of_text(error):
                raise
            if len(parts) == 1:
                self._problems[parts[0][0]] = error.message
                return True
            return all([await self._run([part]) for part in parts])
        if self.space not in (None, embeddings.space):
            return False
        self.space = embeddings.space
        for (index, part), vector in zip(parts, embeddings.vectors, strict=True):
            self.dimensions = len(vector) // 4
            self._vectors[index].append((part.mark, vector))
        return True

    def _result(self, index: int) -> Vectors:
        if index in self._problems:
            return Vectors([], [], self._problems[index])
        return Vectors(
            [mark for mark, _ in self._vectors[index]], [vector for _, vector in self._vectors[index]]
        )


def _is_fault_of_text(error: HearthError) -> bool:
    """Whether another text may succeed: not when the model cannot run or the settings are wrong."""
    if isinstance(error, InvalidRequestError):
        return error.param != "dimensions"
    return not isinstance(error, ModelUnavailableError) and error.status == 500
