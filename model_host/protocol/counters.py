"""Liveness and statistics of a host."""

from __future__ import annotations

from model_host.protocol.parts import EventBase, RequestBase, RequestId


class Ping(RequestBase, frozen=True):
    """Ask for a sign of life. The host answers at once, even while the model loads or a step takes long."""

    id: RequestId


class Pong(EventBase, frozen=True):
    """Terminal event of ``ping``. ``busy_seconds``: age of the current step or prompt, the older one; 0 when idle."""

    id: str
    busy_seconds: float


class GetStats(RequestBase, frozen=True, tag="stats"):
    """Ask for a :class:`Stats` event."""

    id: RequestId


class Stats(EventBase, frozen=True, kw_only=True):
    """Terminal event of ``stats``: counters since the host started, and the current load."""

    id: str
    waiting: int
    running: int
    kv_used: int = 0  # cells
    kv_size: int = 0
    snapshots_saved: int = 0  # sequences written to disk
    snapshots_restored: int = 0
    requests: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    drafted_tokens: int = 0
    accepted_tokens: int = 0  # draft tokens that were sampled
    steps: int
    wait_seconds: float | None = None  # estimate for a new request; None: not known yet
    prefill_tokens_per_second: float  # over the last minute's steps; 0 when idle
    decode_tokens_per_second: float
    uptime_seconds: float
    rss_bytes: int
    thread_plan: dict[int, int] = {}  # threads by batch size, now
