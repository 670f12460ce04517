"""Is there room for the model? Asked before loading, because the kernel's answer is SIGKILL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from gateway.base.errors import ModelUnavailableError
from gateway.models.catalog import ResolvedModel

# Memory is given back by other programs now and then; asking more often than this is pointless.
RETRY_SECONDS = 30.0

# A cache is made smaller in steps of so many cells, and not below what a conversation needs.
CELL_STEP = 256
FEWEST_CELLS = 2048


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that can be allocated now (``available``) and at best (``total``), and what sets the limit."""

    available: int
    total: int
    source: str  # "this machine", or the path of the control group


def read_memory(*, proc: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> Memory:
    """The tightest of the machine's memory and every control group above this process (v1 and v2)."""
    machine = psutil.virtual_memory()
    views = [Memory(machine.available, machine.total, "this machine"), *_control_groups(proc, mount)]
    return min(views, key=lambda view: view.available)


def oom_kills(vmstat: Path = Path("/proc/vmstat")) -> int:
    """How many processes the kernel has killed for memory since the machine started, in any control group.

    0 where the kernel does not tell.
    """
    try:
        fields = dict(line.split(" ", 1) for line in vmstat.read_text().splitlines())
        return int(fields["oom_kill"])
    except (OSError, ValueError, KeyError):
        return 0


def fit_memory(
    model: ResolvedModel,
    headroom_bytes: int,
    memory: Memory | None = None,
    *,
    beside: Sequence[ResolvedModel] = (),
) -> ResolvedModel:
    """``model`` as it fits: with a smaller KV cache where memory is short, unless the configuration says how large.

    ``beside`` are loaded models. Their weights are mapped files, which the kernel counts as available although they
    are in use: so all models together must fit what there is at best. Raises ModelUnavailableError when it does not
    fit; retriable iff it could fit with less other use.
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
    """``model`` with so many bytes less of KV cache; None when that leaves too few cells to work with."""
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


def _control_groups(proc: Path, mount: Path) -> Iterator[Memory]:
    try:
        lines = proc.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if not controllers:
            # With v1 and v2 side by side, systemd mounts v2 under "unified".
            for root in (mount, mount / "unified"):
                yield from _walk_up(root, path, "memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            yield from _walk_up(
                mount / "memory",
                path,
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file",
            )


def _walk_up(root: Path, path: str, limit_name: str, usage_name: str, reclaimable: str) -> Iterator[Memory]:
    """A limit anywhere above counts too. Inside a container the path may be the host's: missing folders are skipped."""
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for depth in range(len(parts), -1, -1):
        folder = root.joinpath(*parts[:depth])
        limit, usage = _number(folder / limit_name), _number(folder / usage_name)
        # Without a limit v2 says "max"; v1 gives a number near 2**63.
        if limit is None or usage is None or limit >= 2**60:
            continue
        # Page cache counts as usage but goes as soon as memory is wanted; the kernel's own tools subtract it too.
        used = max(0, usage - _statistic(folder / "memory.stat", reclaimable))
        yield Memory(max(0, limit - used), limit, str(folder))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _statistic(path: Path, name: str) -> int:
    try:
        fields = dict(line.split(" ", 1) for line in path.read_text().splitlines() if " " in line)
        return int(fields.get(name, "0"))
    except (OSError, ValueError):
        return 0


def _gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"
