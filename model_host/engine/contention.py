"""Who else computes on this machine, as far as Linux tells."""

from __future__ import annotations

import os
import time
from pathlib import Path

_STAT = Path("/proc/stat")
_PAUSE_SECONDS = 0.0015  # between looks


class CpuContention:
    """The other programs of the machine.

    A container sees the whole machine here, so the number says what is worth trying, not what is granted.
    """

    def __init__(self, stat: Path = _STAT) -> None:
        self.cores = os.cpu_count() or 1
        self._stat = stat

    def others(self, looks: int = 4) -> int:
        """How many other threads want a core at this moment; 0 where the system does not tell.

        The least of so many looks, because who hands us work often runs on for a moment; the first that finds nobody
        is the last. Threads of our own that still spin are counted.
        """
        least = self._running()
        for _ in range(looks - 1):
            if least <= 1:
                break
            time.sleep(_PAUSE_SECONDS)
            least = min(least, self._running())
        return max(0, least - 1)

    def _running(self) -> int:
        """Threads that run or could, this one included."""
        try:
            lines = self._stat.read_text().splitlines()
            return next(int(line.split()[1]) for line in lines if line.startswith("procs_running "))
        except (OSError, ValueError, IndexError, StopIteration):
            return 1
