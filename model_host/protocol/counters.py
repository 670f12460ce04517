"""Messages about what a host does and has done; :mod:`model_host.protocol` has them with the others."""

from __future__ import annotations

from msgspec import Struct

from model_host.protocol.parts import RequestId


class Ping(Struct, frozen=True, tag_field="op", tag="ping", forbid_unknown_fields=True):
    """Ask for a sign of life, which comes at once, also while the model loads or a step takes long."""

    id: RequestId


class Pong(Struct, frozen=True, tag_field="event", tag="pong"):
    """Terminal event of ``ping``. ``busy_seconds``: age of the oldest step or prompt in work; 0 when idle."""

    id: str
    busy_seconds: float


class GetStats(Struct, frozen=True, tag_field="op", tag="stats", forbid_unknown_fields=True):
    """Ask for a :class:`Stats` event."""

    id: RequestId


class Stats(Struct, frozen=True, tag_field="event", tag="stats", kw_only=True):
    """Terminal event of ``stats``: counters since the host started, and the present load."""

    id: str
    waiting: int
    running: int
    kv_used: int  # cells
    kv_size: int
    snapshots_saved: int = 0  # sequences written to disk
    snapshots_restored: int = 0  # and brought back
    requests: int
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    drafted_tokens: int = 0  # guessed from earlier text
    accepted_tokens: int = 0  # and sampled just so
    steps: int
    wait_seconds: float | None = None  # estimate for a request that comes now; None: not known yet
    prefill_tokens_per_second: float  # of the last minute's steps; 0 when idle
    decode_tokens_per_second: float
    uptime_seconds: float
    rss_bytes: int
    thread_plan: dict[int, int] = {}  # threads by size of batch, as things stand
