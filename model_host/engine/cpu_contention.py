"""CPU contention: other processes leave this one too few cores for its threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

LOOK_SECONDS = 0.25
SHORTEST_SECONDS = 0.1  # between two looks: Linux counts idle time in hundredths of a second
FRESH_SECONDS = (
    0.02,
    0.03,
)  # a look anew: the first part may tell that cores are free, contention takes both


class CpuContention:
    """``present`` is True while this process could have at least half a core less than its ``threads`` want.

    It could have the cores that idle and those that it uses itself. Run delay and pressure stall would show only that
    threads wait, which ends as soon as there are fewer of them (docs/decisions/0015-threads.md).
    """

    present = False

    def __init__(
        self, threads: int, stat: Path = Path("/proc/stat"), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._threads = threads
        self._wanted = threads - 0.5
        self._stat = stat
        self._clock = clock
        self._lock = threading.Lock()
        self._batch_ended_at = self._looked_at = clock()
        self._core_seconds = self._available()

    @property
    def most_threads(self) -> int:
        """All threads, or half of them under contention, where more would wait for each other."""
        return max(1, self._threads // 2) if self.present else self._threads

    def threads_for_batch(self, sleep: Callable[[float], None] = time.sleep) -> int:
        """Return :attr:`most_threads` for a batch that starts now.

        After a pause, contention may be what another process did before it, and a long batch would run with half of the
        threads to its end. So it is looked for anew, for the first of :data:`FRESH_SECONDS`, and where there still
        seems to be contention, for the second too: so soon, idle times in hundredths of a second often lack one.
        """
        if self.present and self._clock() - self._batch_ended_at > LOOK_SECONDS:
            with self._lock:
                self._restart()
                for seconds in FRESH_SECONDS:
                    sleep(seconds)
                    if not self._judge():
                        break
                self._restart()
        return self.most_threads

    def batch_ended(self) -> None:
        self._batch_ended_at = self._clock()

    def watch(self) -> None:
        """Look every :data:`LOOK_SECONDS` until the process ends."""
        threading.Thread(target=self._watch, name="contention", daemon=True).start()

    def look(self) -> bool:
        """Update ``present`` from the time since the last look, if that is long enough, and return it."""
        with self._lock:
            if self._clock() - self._looked_at >= SHORTEST_SECONDS:
                self._judge()
                self._restart()
        return self.present

    def _judge(self) -> bool:
        now, before = self._available(), self._core_seconds
        if before is not None and now is not None:
            self.present = now - before < self._wanted * (self._clock() - self._looked_at)
        return self.present

    def _restart(self) -> None:
        self._looked_at = self._clock()
        self._core_seconds = self._available()

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            self.look()

    def _available(self) -> float | None:
        """Core seconds this process could have had since the machine started; None if Linux does not say."""
        ours = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        try:
            rows = [line.split() for line in self._stat.read_text().splitlines() if line.startswith("cpu")]
            idle = [int(row[4]) + int(row[5]) for row in rows if row[0] in ours]
        except (OSError, ValueError, IndexError):
            return None
        if len(idle) < len(ours) or not any(idle):
            return None
        return sum(idle) / os.sysconf("SC_CLK_TCK") + time.process_time()
