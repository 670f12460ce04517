"""Health and metrics, which neither start the model nor count as use."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from typing import Literal

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import asdict
from starlette.responses import Response

from gateway import __version__
from gateway.api.http.endpoint import Endpoint
from gateway.api.openai.models import context_length
from gateway.api.services import ApiRequest, Services
from gateway.base.errors import HearthError, OverloadedError
from gateway.base.structs import view
from gateway.base.supervised import TaskHealth
from gateway.inference.embedding import OptionalHost
from gateway.inference.interface import HostHealth, HostState, ModelInfo, ReplicaHealth
from gateway.inference.process.snapshots import FOLDER, SnapshotSizes
from gateway.inference.speed import Speed
from gateway.models.catalog import ResolvedModel
from gateway.telemetry.metrics import CONTENT_TYPE
from gateway.vectors.indexer import IndexHealth
from gateway.wiki.source import WikiHealth

_STATS_SECONDS = 0.5
_RETRY_SECONDS = 2.0
_PACKAGES = ("llama-cpp-python", "starlette", "uvicorn")


class Alive(Struct, frozen=True):
    status: Literal["ok"] = "ok"


class Ready(Struct, frozen=True):
    status: Literal["ready"] = "ready"


class HostStatus(Struct, frozen=True, kw_only=True):
    """The process of a model host; times are in seconds.

    ``problem`` is why it cannot serve now, or else why the last start or run failed.
    """

    state: HostState
    pid: int | None
    rss_bytes: int | None
    uptime_seconds: float | None
    idle_seconds_left: float | None
    open_requests: int
    restarts: int
    problem: str | None
    retry_after: float | None
    load_progress: float | None
    threads: dict[int, int]  # by batch size in tokens; empty: not running, or a fixed number
    speed: Speed | None  # of a request alone, learned from past ones; null: not running, or unknown

    @classmethod
    def of(cls, health: HostHealth, problem: str | None = None) -> HostStatus:
        return view(cls, health, problem=problem or health.problem)


class Queue(Struct, frozen=True):
    waiting: int
    running: int


class Speeds(Struct, frozen=True):
    """Tokens per second in the last measurement; 0 before the first."""

    prefill: float
    decode: float

    @classmethod
    def of(cls, health: HostHealth) -> Speeds:
        stats = health.stats
        return cls(*(float(stats.get(f"{name}_tokens_per_second", 0)) for name in cls.__struct_fields__))


class CacheStatus(Struct, frozen=True, kw_only=True):
    """Used cells of the KV cache, all cells, the used share; sequences saved to disk, and restored.

    ``snapshot_bytes`` is what conversations take on disk, and ``shared_snapshot_bytes`` text that all users share.
    ``bytes_per_cell`` includes all layers, those with a sliding window in full; ``reason`` explains ``size``.
    """

    used: int
    size: int
    usage: float
    bytes_per_cell: int
    reason: str | None
    snapshots_saved: int
    snapshots_restored: int
    snapshot_bytes: int
    shared_snapshot_bytes: int

    @classmethod
    def of(cls, health: HostHealth, sizes: SnapshotSizes) -> CacheStatus:
        names = ("kv_used", "kv_size", "snapshots_saved", "snapshots_restored")
        used, size, saved, restored = (int(health.stats.get(name, 0)) for name in names)
        return cls(
            used=used,
            size=size,
            usage=round(used / size, 4) if size else 0.0,
            bytes_per_cell=health.cell_bytes,
            reason=health.cache_reason,
            snapshots_saved=saved,
            snapshots_restored=restored,
            snapshot_bytes=sizes.own,
            shared_snapshot_bytes=sizes.shared,
        )


class ModelStatus(Struct, frozen=True, kw_only=True):
    """The configured model with the files of its adapters; ``loaded`` is the running host's description of it.

    ``context`` is the maximum of tokens of one request; all requests share the ``kv.size`` cells of the cache.
    """

    name: str
    path: str
    size_bytes: int
    ram_bytes: int
    context: int
    adapters: dict[str, str]
    loaded: ModelInfo | None

    @classmethod
    def of(cls, model: ResolvedModel, health: HostHealth) -> ModelStatus:
        return cls(
            name=model.name,
            path=str(model.path),
            size_bytes=model.size_bytes,
            ram_bytes=model.ram_bytes,
            context=context_length(model, health),
            adapters={name: str(path) for name, path in model.adapters.items()},
            loaded=health.model,
        )


class QueryStatus(Struct, frozen=True):
    """Searches without a vector of their query; ``problem`` is why, if the last search was one."""

    failures: int
    problem: str | None


class RerankStatus(Struct, frozen=True, kw_only=True):
    """The reranker."""

    host: HostStatus
    queue: Queue
    tokens_per_second: float
    model: ModelStatus


class EmbeddingStatus(RerankStatus, frozen=True, kw_only=True):
    """The embedding model. ``dimensions`` of the stored vectors; null means all of the model's."""

    dimensions: int | None
    index: IndexHealth
    queries: QueryStatus


class DatabaseStatus(Struct, frozen=True, kw_only=True):
    """The database; ``problem`` is why it failed."""

    status: Literal["ok", "failed"]
    problem: str | UnsetType = UNSET
    path: str
    size_bytes: int
    schema_version: int
    sqlite_version: str
    server: str  # of `store.url`; "" for SQLite


class AdminHealth(Struct, frozen=True, kw_only=True):
    """State of all parts. ``background`` has the tasks that run as long as the server; failed ones are restarted."""

    status: Literal["ok", "degraded"]
    uptime_seconds: float
    host: HostStatus
    upstream: list[ReplicaHealth]  # servers in place of the model host
    queue: Queue
    tokens_per_second: Speeds
    kv: CacheStatus
    model: ModelStatus
    switching_to: str | None  # the model that is being loaded to replace it
    embedding: EmbeddingStatus | None
    rerank: RerankStatus | None
    database: DatabaseStatus
    wiki: WikiHealth
    background: list[TaskHealth]
    versions: dict[str, str]


async def healthz(request: ApiRequest) -> Alive:
    """Liveness: the process answers."""
    return Alive()


async def readyz(request: ApiRequest) -> Ready:
    """Readiness: the database accepts writes, the queue has room, and no model is known to fail.

    The models may be stopped and are not started.
    """
    services = request.services
    if services.drain.stopping:
        raise services.drain.refusal()
    try:
        await services.database.check()
        for host in services.hosts:
            await host.check()
    except HearthError as error:  # such as a ConfigurationError, whose status is 500
        raise HearthError(
            error.message, code=error.code, status=503, retry_after=error.retry_after, details=error.details
        ) from None
    if services.inference.health().waiting >= services.settings.model.max_waiting:
        raise OverloadedError("the model's queue is full", retry_after=_RETRY_SECONDS)
    return Ready()


async def metrics(request: ApiRequest) -> Response:
    """Metrics in Prometheus' text format."""
    services = request.services
    await _refresh(services)
    return Response(services.metrics.render(), headers={"Content-Type": CONTENT_TYPE})


async def admin_health(request: ApiRequest) -> AdminHealth:
    """State of all parts. ``status`` is ``ok``, or ``degraded`` if a part is broken."""
    services = request.services
    await _refresh(services)
    health, problem = services.inference.health(), await _problem(services.inference.check)
    embedding, embedding_problem = await _embedding(services)
    rerank, rerank_problem = await _optional(services.reranker)
    database, wiki = await _database(services), await _wiki(services)
    background = services.supervision.health()
    sizes = await asyncio.to_thread(SnapshotSizes.of, services.settings.data_dir / FOLDER)
    failing = (
        problem
        or any(each.state == "broken" for each in health.replicas)
        or embedding_problem
        or rerank_problem
        or database.status == "failed"
        or wiki.status == "failing"
        or any(task.state != "running" for task in background)
    )
    return AdminHealth(
        status="degraded" if failing else "ok",
        uptime_seconds=round(time.monotonic() - services.started_at, 1),
        host=HostStatus.of(health, problem),
        upstream=health.replicas,
        queue=Queue(health.waiting, health.running),
        tokens_per_second=Speeds.of(health),
        kv=CacheStatus.of(health, sizes),
        model=ModelStatus.of(services.model, health),
        switching_to=services.switch.switching_to,
        embedding=embedding,
        rerank=rerank,
        database=database,
        wiki=wiki,
        background=background,
        versions=_versions(),
    )


async def _refresh(services: Services) -> None:
    """Update the counters of running hosts, without waiting for a long step."""
    with suppress(HearthError, TimeoutError):
        async with asyncio.timeout(_STATS_SECONDS):
            for host in services.hosts:
                await host.refresh_stats()


async def _database(services: Services) -> DatabaseStatus:
    problem = await _problem(services.database.check)
    return DatabaseStatus(
        status="ok" if problem is None else "failed",
        problem=UNSET if problem is None else problem,
        **asdict(services.database.health()),
    )


async def _problem(check: Callable[[], Awaitable[None]]) -> str | None:
    try:
        await check()
    except HearthError as error:
        return error.message
    return None


async def _wiki(services: Services) -> WikiHealth:
    """Counters of the wiki, without a request to a remote one."""
    try:
        return await services.wiki.health()
    except HearthError as error:
        return WikiHealth(source="local", status="failing", address="", pages=0, problem=error.message)


async def _embedding(services: Services) -> tuple[EmbeddingStatus | None, str | None]:
    """:func:`_optional` of the embedding model, with the state of vector search."""
    status, problem = await _optional(services.embedding)
    model, search = services.embedding.model, services.search
    if status is None or model is None or search is None:
        return None, None
    queries = QueryStatus(search.queries.failures, search.queries.problem)
    index = search.indexer.health()
    return EmbeddingStatus(
        **asdict(status), dimensions=model.dimensions, index=index, queries=queries
    ), problem


async def _optional(host: OptionalHost) -> tuple[RerankStatus | None, str | None]:
    """The state of an optional model, and why its host cannot serve. Both None without the model."""
    health, model = host.health(), host.model
    if health is None or model is None:
        return None, None
    problem = await _problem(host.check)
    status = RerankStatus(
        host=HostStatus.of(health, problem),
        queue=Queue(health.waiting, health.running),
        tokens_per_second=Speeds.of(health).prefill,
        model=ModelStatus.of(model, health),
    )
    return status, problem


@cache
def _versions() -> dict[str, str]:
    """Cached, because reading package metadata takes milliseconds."""
    return {
        "hearth": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


ENDPOINTS = (
    Endpoint("GET", "/healthz", healthz, reply=Alive, access="public"),
    Endpoint("GET", "/readyz", readyz, reply=Ready, access="public"),
    Endpoint("GET", "/metrics", metrics),
    Endpoint("GET", "/admin/health", admin_health, reply=AdminHealth, access="admin"),
)
