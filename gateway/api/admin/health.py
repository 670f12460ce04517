"""Health and metrics, which neither start the model nor count as use."""

from __future__ import annotations

import asyncio
import platform
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version

from starlette.requests import Request
from starlette.responses import Response

from gateway import __version__
from gateway.api.admin.status import (
    AdminHealth,
    Alive,
    CacheStatus,
    DatabaseStatus,
    EmbeddingStatus,
    HostReply,
    HostStatus,
    ModelStatus,
    QueryStatus,
    Queue,
    Ready,
    Speeds,
)
from gateway.api.http.endpoint import Endpoint
from gateway.api.services import Services, services_of
from gateway.base.errors import HearthError, OverloadedError
from gateway.telemetry.metrics import CONTENT_TYPE
from gateway.wiki.source import WikiHealth

_STATS_SECONDS = 0.5
_RETRY_SECONDS = 2.0
_PACKAGES = ("llama-cpp-python", "starlette", "uvicorn")


async def healthz(request: Request) -> Alive:
    """Liveness: the process answers."""
    return Alive()


async def readyz(request: Request) -> Ready:
    """Readiness: the database accepts writes, the queue has room, and no model is known to fail.

    The models may be stopped and are not started.
    """
    services = services_of(request)
    if services.drain.stopping:
        raise services.drain.refusal()
    try:
        await services.database.check()
        await services.inference.check()
        await services.embedding.check()
    except HearthError as error:  # such as a ConfigurationError, whose status is 500
        raise HearthError(
            error.message, code=error.code, status=503, retry_after=error.retry_after, details=error.details
        ) from None
    if services.inference.health().waiting >= services.settings.model.max_waiting:
        raise OverloadedError("the model's queue is full", retry_after=_RETRY_SECONDS)
    return Ready()


async def metrics(request: Request) -> Response:
    """Metrics in Prometheus' text format."""
    services = services_of(request)
    await _refresh(services)
    return Response(services.metrics.render(), headers={"Content-Type": CONTENT_TYPE})


async def admin_health(request: Request) -> AdminHealth:
    """State of all parts. ``status`` is ``ok``, or ``degraded`` if a part is broken."""
    services = services_of(request)
    await _refresh(services)
    health, problem = services.inference.health(), await _problem(services.inference.check)
    embedding, embedding_problem = await _embedding(services)
    database, wiki = await _database(services), await _wiki(services)
    background = services.supervision.health()
    failing = (
        problem
        or embedding_problem
        or database.status == "failed"
        or wiki.status == "failing"
        or any(task.state != "running" for task in background)
    )
    return AdminHealth(
        status="degraded" if failing else "ok",
        uptime_seconds=round(time.monotonic() - services.started_at, 1),
        host=HostStatus.of(health, problem),
        queue=Queue(health.waiting, health.running),
        tokens_per_second=Speeds.of(health),
        kv=CacheStatus.of(health),
        model=ModelStatus.of(services.model, health),
        embedding=embedding,
        database=database,
        wiki=wiki,
        background=background,
        versions=_versions(),
    )


async def warm_host(request: Request) -> HostReply:
    """Load the models and wait until they are ready."""
    services = services_of(request)
    await services.inference.warm()
    await services.embedding.warm()
    return _hosts(services)


async def unload_host(request: Request) -> HostReply:
    """Unload the models when the open requests have ended."""
    services = services_of(request)
    await services.inference.unload()
    await services.embedding.unload()
    return _hosts(services)


async def _refresh(services: Services) -> None:
    """Update the counters of running hosts, without waiting for a long step."""
    with suppress(HearthError, TimeoutError):
        async with asyncio.timeout(_STATS_SECONDS):
            await services.inference.refresh_stats()
            await services.embedding.refresh_stats()


async def _database(services: Services) -> DatabaseStatus:
    return DatabaseStatus.of(services.database.health(), await _problem(services.database.check))


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
    """The state of vector search, and why the embedding host cannot serve. Both None without an embedding model."""
    health, model, search = services.embedding.health(), services.embedding.model, services.search
    if health is None or model is None or search is None:
        return None, None
    problem = await _problem(services.embedding.check)
    status = EmbeddingStatus(
        host=HostStatus.of(health, problem),
        queue=Queue(health.waiting, health.running),
        tokens_per_second=Speeds.of(health).prefill,
        model=ModelStatus.of(model, health),
        dimensions=model.dimensions,
        index=search.indexer.health(),
        queries=QueryStatus(search.queries.failures, search.queries.problem),
    )
    return status, problem


def _hosts(services: Services) -> HostReply:
    embedding = services.embedding.health()
    return HostReply(
        HostStatus.of(services.inference.health()),
        HostStatus.of(embedding) if embedding is not None else None,
    )


@cache
def _versions() -> dict[str, str]:
    """Cached, because reading package metadata takes milliseconds."""
    return {
        "hearth": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }


ENDPOINTS = (
    Endpoint("GET", "/healthz", healthz, "public", reply=Alive),
    Endpoint("GET", "/readyz", readyz, "public", reply=Ready),
    Endpoint("GET", "/metrics", metrics, "user"),
    Endpoint("GET", "/admin/health", admin_health, "admin", reply=AdminHealth),
    Endpoint("POST", "/admin/host/warm", warm_host, "admin", reply=HostReply),
    Endpoint("POST", "/admin/host/unload", unload_host, "admin", reply=HostReply),
)
