"""Where numbers were measured: without it they mean nothing."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import psutil
from msgspec import Struct

import gateway

_BUSY = 0.5  # of a core: with more than that at work, other programs slow a measurement


class BenchmarkMachine(Struct, frozen=True, kw_only=True):
    """The machine of the client, which is the server's too unless its address says otherwise."""

    processor: str
    cores: int  # that this process may use
    memory_bytes: int
    system: str
    load: float  # processes that wanted a core when the measurement began, over the last minute
    version: str
    commit: str  # "" outside a checkout
    date: str  # UTC

    @property
    def quiet(self) -> bool:
        """Whether next to nothing else ran at the beginning."""
        return self.load < _BUSY

    def __str__(self) -> str:
        code = f"hearth {self.version}" + (f" ({self.commit})" if self.commit else "")
        text = (
            f"{self.processor}, {self.cores} cores, {self.memory_bytes / 2**30:.0f} GiB, {self.system}; "
            f"{code}; {self.date}"
        )
        return text if self.quiet else f"{text}; other programs were running: load {self.load:.1f}"


def this_machine() -> BenchmarkMachine:
    """Look at this machine now."""
    return BenchmarkMachine(
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.release()}",
        load=os.getloadavg()[0],
        version=gateway.__version__,
        commit=_commit(Path(gateway.__file__).resolve().parent.parent),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _commit(root: Path) -> str:
    """The commit of a checkout, with a ``+`` when it has changes."""
    git = shutil.which("git")
    if git is None or not (root / ".git").exists():
        return ""
    described = subprocess.run(
        [git, "-C", str(root), "describe", "--always", "--dirty=+", "--exclude=*"],
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip()
