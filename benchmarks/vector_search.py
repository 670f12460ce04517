"""Vectors of a generated wiki: how fast they are made and stored, and how long searches by text and vectors take.

    python benchmarks/vector_search.py [--passages 20000] [--dimensions 256] [--queries 200] [--model FILE.gguf]

Printed are wall-clock and CPU times; on a busy machine only CPU times are meaningful. Search times do not depend on the
values of vectors, so those of the index are random. With ``--model``, for example the shape 300m of
``models/random_embedding.py``, that model embeds ``--timed`` pages and some queries.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import psutil

from benchmarks.common import command_line, percentile
from benchmarks.wiki_dump import Wiki
from gateway.base.supervised import Supervision
from gateway.config.settings import ModelSettings, WikiSettings
from gateway.inference.embedder import HostEmbedder
from gateway.inference.embedding import Embedder, Embeddings, NoEmbedder
from gateway.models.catalog import ResolvedModel
from gateway.store.db import Database
from gateway.store.vectors import IMPORTED, use_extension
from gateway.store.wiki.vectors import pages_near
from gateway.vectors.indexer import Indexer
from gateway.vectors.queries import Queries
from gateway.wiki.ingest import prepare, put
from gateway.wiki.local import LocalWiki
from gateway.wiki.search.vectors import Meaning, WikiPages


class RandomEmbedder(NoEmbedder):
    """Embeds anything at no cost."""

    def __init__(self, width: int) -> None:
        self._random = np.random.default_rng(1)
        self._width = width

    async def embed(self, texts: Sequence[str | list[int]], **_: Any) -> Embeddings:
        made = self._random.standard_normal((len(texts), self._width), dtype=np.float32)
        made /= np.linalg.norm(made, axis=1, keepdims=True)
        return Embeddings([row.tobytes() for row in made], [0] * len(texts), "random")


def fill(database: Database, pages: int, wiki: Wiki) -> None:
    """Store pages without vectors."""
    wanted = itertools.islice((page for page in wiki.pages() if page.target is None), pages)
    while batch := [prepare(page.title, 1, page.text) for page in itertools.islice(wanted, 200)]:
        database.write_sync(lambda c, batch=batch: [put(c, item, "benchmark") for item in batch])


async def index(database: Database, embedder: Embedder, dimensions: int | None) -> float:
    """Make all missing vectors. Return the seconds."""
    indexer = Indexer(database, embedder, [WikiPages(IMPORTED)], dimensions=dimensions)
    started = time.perf_counter()
    indexer.start(Supervision())
    await indexer.caught_up()
    seconds = time.perf_counter() - started
    assert indexer.health().problem is None, indexer.health().problem
    await indexer.close()
    return seconds


def count_passages(database: Database) -> int:
    return database.read_sync(lambda c: int(c.execute("SELECT count(*) FROM wiki_passages").get))


async def search(database: Database, embedder: Embedder, wiki: Wiki, queries: int) -> None:
    """Time each search mode. The query's vector is computed before the clock starts."""
    meaning = Meaning(
        database,
        Queries(embedder, dimensions=None, min_similarity=-1, timeout_seconds=60, on_stale=lambda: None),
        IMPORTED,
    )
    rng = random.Random(7)
    ways = [LocalWiki(database, WikiSettings(search=mode), meaning) for mode in ("text", "vectors", "both")]
    times: dict[str, list[Time]] = {}
    for _ in range(queries):
        term = " ".join([*wiki.words(4), rng.choice(wiki.titles)])
        await meaning.search(term, 1)
        for way in ways:
            started = now()
            await way.search_text(term, 3)
            times.setdefault(way._settings.search, []).append(since(started))
    for mode, values in times.items():
        report(f"search by {mode}", values)


def nearest(database: Database, width: int) -> None:
    """Time the comparison of vectors alone."""
    rng = np.random.default_rng(3)
    values: list[Time] = []

    def run(connection: apsw.Connection) -> None:
        use_extension(connection)
        for _ in range(100):
            vector = rng.standard_normal(width, dtype=np.float32).tobytes()
            started = now()
            pages_near(connection, IMPORTED, "random", vector, 33, 2.0)
            values.append(since(started))

    database.read_sync(run)
    report("nearest pages alone", values)


Time = tuple[float, float]  # wall-clock and CPU milliseconds


def now() -> Time:
    return time.perf_counter() * 1000, time.process_time() * 1000


def since(started: Time) -> Time:
    ended = now()
    return ended[0] - started[0], ended[1] - started[1]


def report(name: str, values: list[Time]) -> None:
    clock, cpu = zip(*values, strict=True)
    print(
        f"{name:22} clock: median {statistics.median(clock):7.2f} ms, p99 {percentile(clock, 99):7.2f} ms; "
        f"CPU: median {statistics.median(cpu):7.2f} ms, p99 {percentile(cpu, 99):7.2f} ms"
    )


async def time_model(folder: Path, model: Path, pages: int, dimensions: int, wiki: Wiki) -> None:
    """The real host: passages into vectors, and single queries."""
    resolved = ResolvedModel(
        name="model", path=model, size_bytes=0, ram_bytes=0, context=2048, kind="embedding"
    )
    embedder = HostEmbedder(lambda: resolved, ModelSettings(chunk=256, memory_headroom_bytes=0))
    started = time.perf_counter()
    await embedder.warm()
    print(f"model ready after {time.perf_counter() - started:.2f} s")
    database = Database(folder / "model.db")
    database.open()
    fill(database, pages, wiki)
    seconds = await index(database, embedder, dimensions)
    await embedder.refresh_stats()
    health, passages = embedder.health(), count_passages(database)
    tokens, used = health.stats["prompt_tokens"], psutil.Process(health.pid).cpu_times()
    print(
        f"{pages} pages, {passages} passages, {tokens} tokens in {seconds:.1f} s, CPU {used.user + used.system:.1f} s: "
        f"{tokens / (used.user + used.system):.0f} tokens per second and core; "
        f"{(health.rss_bytes or 0) / 1e6:.0f} MB resident"
    )
    values: list[Time] = []
    for number in range(50):
        started = now()
        await embedder.embed([f"who made the language {number}"], kind="query", lane="retrieval")
        values.append(since(started))
    report("embedding a query", values)
    await embedder.close()
    database.close()


async def run(arguments: argparse.Namespace, folder: Path) -> None:
    wiki = Wiki(arguments.passages)  # about four passages a page, so pages enough
    print(f"load average {os.getloadavg()[0]:.1f}")
    if arguments.model:
        await time_model(folder, arguments.model, arguments.timed, arguments.dimensions, Wiki(1000, seed=2))
    database = Database(folder / "hearth.db")
    database.open()
    fill(database, arguments.passages // 4, wiki)
    before = (folder / "hearth.db").stat().st_size
    embedder = RandomEmbedder(arguments.dimensions)
    seconds = await index(database, embedder, None)
    passages = count_passages(database)
    await database.truncate_log()
    size = (folder / "hearth.db").stat().st_size - before
    print(
        f"{passages} passages cut and stored in {seconds:.1f} s: {passages / seconds:.0f}/s, {size / 1e6:.0f} MB"
    )
    started = time.perf_counter()
    await index(database, embedder, None)
    print(f"looking for new pages: {(time.perf_counter() - started) * 1000:.1f} ms")
    nearest(database, arguments.dimensions)
    await search(database, embedder, wiki, arguments.queries)
    database.close()


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--dimensions", type=int, default=256)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--timed", type=int, default=20, help="pages that the model embeds")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(run(arguments, Path(temporary)))


if __name__ == "__main__":
    main()
