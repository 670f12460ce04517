"""The machine on which a benchmark ran."""

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

_BUSY = 0.5  # cores; more load than this slows a measurement


class BenchmarkMachine(Struct, frozen=True, kw_only=True):
    """The client's machine, which is also the server's if its address is local."""

    processor: str
    cores: int  # usable by this process
    memory_bytes: int
    system: str
    load: float  # 1-minute load average at the start
    version: str
    commit: str  # "" outside a checkout
    date: str  # UTC

    @property
    def quiet(self) -> bool:
        return self.load < _BUSY

    def __str__(self) -> str:
        code = f"hearth {self.version}" + (f" ({self.commit})" if self.commit else "")
        text = (
            f"{self.processor}, {self.cores} cores, {self.memory_bytes / 2**30:.0f} GiB, {self.system}; "
            f"{code}; {self.date}"
        )
        return text if self.quiet else f"{text}; other programs were running: load {self.load:.1f}"


def this_machine() -> BenchmarkMachine:
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
    """Return the commit of a checkout, with a ``+`` if it has changes."""
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
