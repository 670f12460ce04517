"""What the health endpoints tell, as types. The OpenAPI document is made from them."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from gateway.api.openai.models import context_length
from gateway.base.supervised import TaskHealth
from gateway.inference.interface import HostHealth, HostState, ModelInfo
from gateway.inference.speed import Speed
from gateway.models.catalog import ResolvedModel
from gateway.store.db import DatabaseHealth
from gateway.vectors.indexer import IndexHealth
from gateway.wiki.source import WikiHealth


class Alive(Struct, frozen=True):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Ready(Struct, frozen=True):
    """Requests make sense now."""

    status: Literal["ready"] = "ready"


class HostStatus(Struct, frozen=True, kw_only=True):
    """The model host's process; times are seconds.

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
    threads: dict[int, int]  # now, by size of batch in tokens; empty: not running, or a fixed number
    speed: Speed | None  # of a request alone, learned from past ones; null: not running, or not known yet

    @classmethod
    def of(cls, health: HostHealth, problem: str | None = None) -> HostStatus:
        """As the operator sees it. ``problem``: why it cannot serve now."""
        fields = {name: getattr(health, name) for name in cls.__struct_fields__}
        return cls(**fields | {"problem": problem or health.problem})


class HostReply(Struct, frozen=True):
    """The hosts after they were started, or let go. ``embedding_host`` is null without an embedding model."""

    host: HostStatus
    embedding_host: HostStatus | None


class Queue(Struct, frozen=True):
    """Requests in the host."""

    waiting: int
    running: int


class Speeds(Struct, frozen=True):
    """Tokens per second, as last measured; 0 before the first."""

    prefill: float
    decode: float

    @classmethod
    def of(cls, health: HostHealth) -> Speeds:
        """From the host's counters."""
        stats = health.stats
        return cls(*(float(stats.get(f"{name}_tokens_per_second", 0)) for name in cls.__struct_fields__))


class CacheStatus(Struct, frozen=True, kw_only=True):
    """Cells of the KV cache in use, of all, and their share; sequences kept on disk, and taken up from there.

    ``bytes_per_cell`` counts all layers, those with a sliding window in full; ``reason`` tells why there are so many.
    """

    used: int
    size: int
    usage: float
    bytes_per_cell: int
    reason: str | None
    snapshots_saved: int
    snapshots_restored: int

    @classmethod
    def of(cls, health: HostHealth) -> CacheStatus:
        """From the host's counters."""
        used, size = _counter(health, "kv_used"), _counter(health, "kv_size")
        return cls(
            used=used,
            size=size,
            usage=round(used / size, 4) if size else 0.0,
            bytes_per_cell=health.cell_bytes,
            reason=health.cache_reason,
            snapshots_saved=_counter(health, "snapshots_saved"),
            snapshots_restored=_counter(health, "snapshots_restored"),
        )


class ModelStatus(Struct, frozen=True, kw_only=True):
    """The configured model; ``loaded`` is what the running host says of it.

    ``context`` is how many tokens one request may have; the cells of the cache, which all share, are ``kv.size``.
    """

    name: str
    path: str
    size_bytes: int
    ram_bytes: int
    context: int
    loaded: ModelInfo | None

    @classmethod
    def of(cls, model: ResolvedModel, health: HostHealth) -> ModelStatus:
        """Of the model that is, or would be, loaded."""
        return cls(
            name=model.name,
            path=str(model.path),
            size_bytes=model.size_bytes,
            ram_bytes=model.ram_bytes,
            context=context_length(model, health),
            loaded=health.model,
        )


class QueryStatus(Struct, frozen=True):
    """Searches that had to do without their query's vector; ``problem`` is why the last one did, if it was one."""

    failures: int
    problem: str | None


class EmbeddingStatus(Struct, frozen=True, kw_only=True):
    """The embedding model. ``dimensions`` are those of the stored vectors; null: all that the model makes."""

    host: HostStatus
    queue: Queue
    tokens_per_second: float
    model: ModelStatus
    dimensions: int | None
    index: IndexHealth
    queries: QueryStatus


class DatabaseStatus(Struct, frozen=True, kw_only=True):
    """The database; ``problem`` tells why it failed."""

    status: Literal["ok", "failed"]
    problem: str | UnsetType = UNSET
    path: str
    size_bytes: int
    schema_version: int
    sqlite_version: str

    @classmethod
    def of(cls, health: DatabaseHealth, problem: str | None) -> DatabaseStatus:
        """With the outcome of the check."""
        names = DatabaseHealth.__struct_fields__
        return cls(
            status="ok" if problem is None else "failed",
            problem=UNSET if problem is None else problem,
            **{name: getattr(health, name) for name in names},
        )


class AdminHealth(Struct, frozen=True, kw_only=True):
    """Everything an operator looks at first. ``versions`` are those of the program and of what it stands on.

    ``background`` has the tasks that live as long as the server. One that fails starts again after a wait.
    """

    status: Literal["ok", "degraded"]
    uptime_seconds: float
    host: HostStatus
    queue: Queue
    tokens_per_second: Speeds
    kv: CacheStatus
    model: ModelStatus
    embedding: EmbeddingStatus | None
    database: DatabaseStatus
    wiki: WikiHealth
    background: list[TaskHealth]
    versions: dict[str, str]


def _counter(health: HostHealth, name: str) -> int:
    return int(health.stats.get(name, 0))
