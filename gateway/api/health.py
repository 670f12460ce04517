"""Health and metrics. None of these wakes the model or counts as its use."""

from __future__ import annotations

import asyncio
import platform
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from gateway import __version__
from gateway.api.services import Services, services_of
from gateway.errors import HearthError, OverloadedError
from gateway.inference.interface import HostHealth
from gateway.metrics import CONTENT_TYPE

_STATS_SECONDS = 0.5
_RETRY_SECONDS = 2.0
_PACKAGES = ("llama-cpp-python", "starlette", "uvicorn")


async def healthz(request: Request) -> Response:
    """The process answers. Touches nothing else."""
    return JSONResponse({"status": "ok"})


async def readyz(request: Request) -> Response:
    """Whether requests make sense now: the database answers and the queue has room. The model may be stopped."""
    services = services_of(request)
    if services.drain.stopping:
        raise services.drain.refusal()
    await services.database.check()
    if services.inference.health().waiting >= services.settings.model.max_waiting:
        raise OverloadedError("the model's queue is full", retry_after=_RETRY_SECONDS)
    return JSONResponse({"status": "ready"})


async def metrics(request: Request) -> Response:
    """Prometheus' text format."""
    services = services_of(request)
    await _refresh(services)
    return Response(services.metrics.render(), headers={"Content-Type": CONTENT_TYPE})


async def admin_health(request: Request) -> Response:
    """Everything an operator looks at first. ``status`` is ``ok``, or ``degraded`` when something is broken."""
    services = services_of(request)
    await _refresh(services)
    health = services.inference.health()
    database, wiki = await _database(services), await _wiki(services)
    healthy = health.state != "broken" and database["status"] == "ok" and wiki["status"] != "failing"
    return JSONResponse(
        {
            "status": "ok" if healthy else "degraded",
            "uptime_seconds": round(time.monotonic() - services.started_at, 1),
            "host": _host(health),
            "queue": {"waiting": health.waiting, "running": health.running},
            "tokens_per_second": _speeds(health),
            "kv": _kv(health),
            "model": _model(services, health),
            "database": database,
            "wiki": wiki,
            "versions": _versions(),
        }
    )


async def warm_host(request: Request) -> Response:
    """Start the model host and wait until it is ready."""
    services = services_of(request)
    await services.inference.warm()
    return JSONResponse({"host": _host(services.inference.health())})


async def unload_host(request: Request) -> Response:
    """Let the model host go; open requests end first."""
    services = services_of(request)
    await services.inference.unload()
    return JSONResponse({"host": _host(services.inference.health())})


async def _refresh(services: Services) -> None:
    """Fresh counters if a host runs and answers soon; a host in a long step must not stall its observers."""
    with suppress(HearthError, TimeoutError):
        async with asyncio.timeout(_STATS_SECONDS):
            await services.inference.refresh_stats()


async def _database(services: Services) -> dict[str, Any]:
    try:
        await services.database.check()
    except HearthError as error:
        return {"status": "failed", "problem": error.message, **services.database.health()}
    return {"status": "ok", **services.database.health()}


async def _wiki(services: Services) -> dict[str, Any]:
    """Counters of the wiki; a wiki on another machine is not asked anything."""
    try:
        found: dict[str, Any] = msgspec.to_builtins(await services.wiki.health())
    except HearthError as error:
        return {"status": "failing", "problem": error.message}
    return found


def _host(health: HostHealth) -> dict[str, Any]:
    return {
        "state": health.state,
        "pid": health.pid,
        "rss_bytes": health.rss_bytes,
        "uptime_seconds": health.uptime_seconds,
        "idle_seconds_left": health.idle_seconds_left,
        "open_requests": health.open_requests,
        "restarts": health.restarts,
        "problem": health.problem,
        "retry_after": health.retry_after,
        "load_progress": health.load_progress,
    }


def _speeds(health: HostHealth) -> dict[str, float]:
    names = ("prefill", "decode")
    return {name: health.stats.get(f"{name}_tokens_per_second", 0.0) for name in names}


def _kv(health: HostHealth) -> dict[str, float]:
    used, size = health.stats.get("kv_used", 0), health.stats.get("kv_size", 0)
    return {
        "used": used,
        "size": size,
        "usage": round(used / size, 4) if size else 0.0,
        "snapshots_saved": health.stats.get("snapshots_saved", 0),
        "snapshots_restored": health.stats.get("snapshots_restored", 0),
    }


def _model(services: Services, health: HostHealth) -> dict[str, Any]:
    model = services.model
    return {
        "name": model.name,
        "path": str(model.path),
        "size_bytes": model.size_bytes,
        "ram_bytes": model.ram_bytes,
        "context": model.context,
        "loaded": msgspec.to_builtins(health.model) if health.model is not None else None,
    }


@cache
def _versions() -> dict[str, str]:
    """Versions on this machine; reading package metadata costs milliseconds, and they do not change."""
    return {
        "hearth": __version__,
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
    }
