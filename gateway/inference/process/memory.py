"""Checks before a load whether the model fits into memory: if it did not, the kernel would kill the host."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from gateway.base.cores import MOUNT, PROC, control_groups
from gateway.base.errors import ModelUnavailableError
from gateway.models.catalog import ResolvedModel

# Limit, usage and reclaimable page cache of a control group: files and a field of v2, then of v1.
_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)
# Other programs free memory only now and then.
RETRY_SECONDS = 30.0

# A KV cache is reduced in steps of this many cells, and not below what a conversation needs.
CELL_STEP = 256
FEWEST_CELLS = 2048


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that can be allocated now (``available``) and at most (``total``), and the origin of the limit."""

    available: int
    total: int
    source: str  # "this machine", or the path of the control group


def read_memory(*, proc: Path = PROC, mount: Path = MOUNT) -> Memory:
    """The tightest limit: the machine's memory or that of a control group."""
    machine = psutil.virtual_memory()
    limits = [Memory(machine.available, machine.total, "this machine")]
    for group in control_groups("memory", proc, mount):
        for names in _FILES:
            limits += _limit(group, *names)
    return min(limits, key=lambda limit: limit.available)


def oom_kills() -> int:
    """Number of processes in any control group that the kernel has killed for memory since boot; 0 if unknown."""
    return _fields(Path("/proc/vmstat")).get("oom_kill", 0)


def fit_memory(
    model: ResolvedModel,
    headroom_bytes: int,
    memory: Memory | None = None,
    *,
    beside: Sequence[ResolvedModel] = (),
) -> ResolvedModel:
    """``model``, with a smaller KV cache if memory is short and the configuration does not set its size.

    ``beside`` are the loaded models. Their weights are mapped files, which the kernel counts as available although they
    are in use, so all models together must fit into the total. Raises ModelUnavailableError when the model does not
    fit; retriable iff it could fit once other programs use less.
    """
    memory = memory or read_memory()
    needed = model.ram_bytes + headroom_bytes
    available = min(memory.available, memory.total - sum(other.ram_bytes for other in beside))
    if needed <= available:
        return model
    if (smaller := _with_smaller_cache(model, needed - available, memory)) is not None:
        return smaller
    others = "".join(f" beside {other.name}" for other in beside)
    raise ModelUnavailableError(
        f"{model.name} needs about {_gib(model.ram_bytes)} of memory plus {_gib(headroom_bytes)} kept free, but only "
        f"{_gib(max(0, available))} of {_gib(memory.total)} is available{others} (limit: {memory.source}); use a "
        f"smaller model or a smaller `{model.context_setting}`, or end other programs; `hearth doctor` says what fits",
        code="out_of_memory",
        retry_after=RETRY_SECONDS if needed <= memory.total else None,
        details={"needed_bytes": needed, "available_bytes": max(0, available), "total_bytes": memory.total},
    )


def _with_smaller_cache(model: ResolvedModel, missing: int, memory: Memory) -> ResolvedModel | None:
    """``model`` with a KV cache that is ``missing`` bytes smaller; None when too few cells would remain."""
    if model.kind != "chat" or model.context_given or not model.cell_bytes:
        return None
    cells = (model.context - -(-missing // model.cell_bytes)) // CELL_STEP * CELL_STEP
    if cells < FEWEST_CELLS:
        return None
    saved = (model.context - cells) * model.cell_bytes
    reason = (
        f"{model.context} were planned, but only {_gib(memory.available)} of memory is free "
        f"(limit: {memory.source})"
    )
    return msgspec.structs.replace(
        model, context=cells, ram_bytes=model.ram_bytes - saved, cache_reason=reason
    )


def _limit(group: Path, limit_name: str, usage_name: str, reclaimable: str) -> Iterator[Memory]:
    limit, usage = _number(group / limit_name), _number(group / usage_name)
    # Without a limit, v2 has "max" and v1 a number near 2**63.
    if limit is None or usage is None or limit >= 2**60:
        return
    # The page cache counts as usage, but the kernel frees it on demand; its own tools subtract it, too.
    used = max(0, usage - _fields(group / "memory.stat").get(reclaimable, 0))
    yield Memory(max(0, limit - used), limit, str(group))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _fields(path: Path) -> dict[str, int]:
    """The numbers of a file with a name and a number on each line; none when it cannot be read."""
    try:
        rows = [line.split() for line in path.read_text().splitlines()]
        return {row[0]: int(row[1]) for row in rows if len(row) == 2}
    except (OSError, ValueError):
        return {}


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
