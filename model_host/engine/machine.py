"""Limits of this process: its CPUs, its parent's life, and its place in the order of the OOM killer."""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def usable_cpus() -> int:
    """Number of cores this process may use: its affinity mask, bounded by the cgroup's CPU quota."""
    cpus = len(os.sched_getaffinity(0))
    quota = _cgroup_cpu_quota()
    return max(1, min(cpus, math.ceil(quota)) if quota else cpus)


def _cgroup_cpu_quota(root: Path = Path("/sys/fs/cgroup")) -> float | None:
    """CPUs granted by the tightest cgroup from ours up to the root (v2 ``cpu.max``, v1 ``cpu.cfs_quota_us``)."""
    quotas: list[float] = []
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        _, controllers, path = line.split(":", 2)
        base = root if not controllers else root / controllers
        folder = base / path.lstrip("/")
        for place in [folder, *folder.parents]:
            if not place.is_relative_to(base):
                break
            quotas += _quota_of(place)
    return min(quotas, default=None)


def _quota_of(folder: Path) -> list[float]:
    try:
        if (v2 := folder / "cpu.max").exists():
            quota, period = v2.read_text().split()
            return [] if quota == "max" else [int(quota) / int(period)]
        if (v1 := folder / "cpu.cfs_quota_us").exists():
            amount = int(v1.read_text())
            return [] if amount < 0 else [amount / int((folder / "cpu.cfs_period_us").read_text())]
    except (OSError, ValueError, ZeroDivisionError):
        pass  # an unreadable limit counts as none
    return []


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; exit now if it has ended already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit("the gateway that started this model host is gone")


def be_first_out_of_memory() -> None:
    """Have the kernel kill this process, not the gateway with the database, when memory runs out."""
    with contextlib.suppress(OSError):  # not Linux or not permitted; it is only a preference
        Path("/proc/self/oom_score_adj").write_text("600")
