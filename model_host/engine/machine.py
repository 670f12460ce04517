"""Limits of this process: its parent's life, and its place in the order of the OOM killer."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from pathlib import Path

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends; exit now if it has ended already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        raise SystemExit("the gateway that started this model host is gone")


def be_first_out_of_memory() -> None:
    """Have the kernel kill this process, not the gateway with the database, when memory runs out."""
    with contextlib.suppress(OSError):  # not Linux or not permitted; it is only a preference
        Path("/proc/self/oom_score_adj").write_text("600")
