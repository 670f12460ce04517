"""Query vectors within a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from gateway.base.errors import ModelUnavailableError
from gateway.vectors.queries import Queries
from tests.gateway.vectors.words import WordEmbedder, vector_of
from tests.waiting import until


class Stale:
    def __init__(self) -> None:
        self.told = 0

    def __call__(self) -> None:
        self.told += 1


@pytest.fixture
def stale() -> Stale:
    return Stale()


@pytest.fixture
async def queries(embedder: WordEmbedder, stale: Stale) -> AsyncIterator[Queries]:
    made = Queries(embedder, dimensions=128, min_similarity=0.2, timeout_seconds=0.1, on_stale=stale)
    yield made
    await made.close()


async def test_a_query_is_asked_once(queries: Queries, embedder: WordEmbedder, stale: Stale) -> None:
    first = await queries.vector("red car", "alice")
    assert (first.vector, first.space) == (vector_of(" red car"), "words:128")
    assert await queries.vector("red car", "bob") == first
    assert len(embedder.calls) == 1
    call = embedder.calls[0]
    assert (call.kind, call.lane, call.owner, call.dimensions) == ("query", "retrieval", "alice", 128)
    queries.stale()
    assert (stale.told, await queries.vector("red car")) == (1, first)
    assert len(embedder.calls) == 2


async def test_what_is_late_goes_on_alone(queries: Queries, embedder: WordEmbedder) -> None:
    """The next search finds the model warm."""
    embedder.gate = asyncio.Event()
    with pytest.raises(ModelUnavailableError, match=r"no vector within 0\.1 s"):
        await queries.vector("slow")
    assert (queries.failures, "no vector" in (queries.problem or "")) == (1, True)
    assert len(queries._late) == 1
    embedder.gate.set()
    await until(lambda: not queries._late)
    await queries.vector("slow")
    assert queries.problem is None


@pytest.mark.parametrize(
    ("error", "level", "problem"),
    [
        (ModelUnavailableError("no memory"), "warning", "no memory"),
        (KeyError("x"), "error", "no vector within"),
    ],
)
async def test_the_failure_of_a_late_one_is_reported(
    queries: Queries, embedder: WordEmbedder, error: Exception, level: str, problem: str
) -> None:
    embedder.gate = asyncio.Event()
    with pytest.raises(ModelUnavailableError, match="no vector within"):
        await queries.vector("slow")
    embedder.error = error
    with capture_logs() as logs:
        embedder.gate.set()
        await until(lambda: not queries._late)
    assert [each["log_level"] for each in logs] == [level]
    assert problem in (queries.problem or "")


async def test_late_ones_are_limited(queries: Queries, embedder: WordEmbedder) -> None:
    embedder.gate = asyncio.Event()
    results = await asyncio.gather(*(queries.vector(f"slow {n}") for n in range(12)), return_exceptions=True)
    assert all(isinstance(result, ModelUnavailableError) for result in results)
    with pytest.raises(ModelUnavailableError, match="too slow"):
        await queries.vector("one more")


async def test_a_cancelled_search_cancels_its_query(queries: Queries, embedder: WordEmbedder) -> None:
    embedder.gate = asyncio.Event()
    task = asyncio.create_task(queries.vector("slow"))
    await until(lambda: bool(embedder.calls))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not queries._late


async def test_closing_stops_what_is_late(embedder: WordEmbedder, stale: Stale) -> None:
    queries = Queries(embedder, dimensions=None, min_similarity=0, timeout_seconds=0.01, on_stale=stale)
    embedder.gate = asyncio.Event()
    with pytest.raises(ModelUnavailableError):
        await queries.vector("slow")
    await queries.close()
    assert not queries._late
