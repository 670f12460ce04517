"""Limits of this machine for processes: control groups, and the number of usable cores."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

PROC = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")


def control_groups(controller: str, proc: Path = PROC, mount: Path = MOUNT) -> Iterator[Path]:
    """The folders of every group that may limit ``controller`` (v1 and v2), the innermost of each tree first.

    Outer groups limit this process, too. Inside a container the paths may be the host's, so folders may be missing.
    """
    try:
        lines = proc.read_text().splitlines()
    except OSError:  # not Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        # With v1 and v2 side by side, systemd mounts v2 under "unified".
        roots = (mount / controllers, mount / controller) if controllers else (mount, mount / "unified")
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for root in dict.fromkeys(roots):
            for depth in range(len(parts), -1, -1):
                yield root.joinpath(*parts[:depth])


def usable_cores(*, proc: Path = PROC, mount: Path = MOUNT) -> int:
    """Cores of the affinity mask, bounded by the CPU quotas of the control groups."""
    quotas = [_quota(group) for group in control_groups("cpu", proc, mount)]
    cores = min([len(os.sched_getaffinity(0)), *(math.ceil(quota) for quota in quotas if quota)])
    return max(1, cores)


def _quota(group: Path) -> float | None:
    """The CPU time that a group may use, in cores; None if it has no limit or the folder is missing."""
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota = (group / "cpu.cfs_quota_us").read_text()
            period = (group / "cpu.cfs_period_us").read_text()
        return int(quota) / int(period) if quota != "max" and int(quota) > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None
