"""How many processor cores a model host may use here."""

from __future__ import annotations

import math
import os
from pathlib import Path

from gateway.base.cgroups import MOUNT, PROC, control_groups


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
