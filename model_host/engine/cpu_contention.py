"""CPU contention: other processes leave this one too few cores for its threads."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

LOOK_SECONDS = 0.25  # between two looks; so long without a batch is a pause
FIRST_SECONDS = 0.03  # the first look after a pause


class CpuContention:
    """``present`` is True while this process could have at least half a core less than its ``threads`` want.

    It could have the cores that idle and those that it uses itself. Run delay and pressure stall would show only that
    threads wait, which ends as soon as there are fewer of them (docs/decisions/0015-threads.md). What others did before
    a batch, such as a client that made its prompt, says nothing about the batch itself: after a pause it starts with
    all threads, unless there was contention before it and others run at this moment, too. If the first look finds that
    this was wrong, ``abort`` ends the batch, which is then computed anew.
    """

    present = False

    def __init__(
        self,
        threads: int,
        abort: Callable[[], None],
        stat: Path = Path("/proc/stat"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._threads = threads
        self._abort = abort
        self._stat = stat
        self._clock = clock
        self._batch_ended_at = -math.inf
        self._resumed = threading.Event()
        self._restart()

    @property
    def most_threads(self) -> int:
        """All threads, or half of them under contention, where more would wait for each other."""
        return max(1, self._threads // 2) if self.present and not self._paused else self._threads

    def batch_begins(self) -> None:
        if self._paused:
            running = self._rows("procs_running")  # on the whole machine, at this moment
            self.present = self.present and any(int(row[1]) > self._threads for row in running)
            self._resumed.set()
        self._batch_ended_at = math.inf

    def batch_ended(self) -> None:
        self._batch_ended_at = self._clock()

    def watch(self) -> None:
        """Look from now on, in a thread, while batches are computed."""
        threading.Thread(target=self._watch, name="contention", daemon=True).start()

    def look(self) -> bool:
        """Update ``present`` from the time since the last look, and return it."""
        now, before = self._available(), self._core_seconds
        if before is not None and now is not None:
            self.present = now - before < (self._threads - 0.5) * (self._clock() - self._looked_at)
        self._restart()
        return self.present

    @property
    def _paused(self) -> bool:
        return self._clock() - self._batch_ended_at > LOOK_SECONDS

    def _restart(self) -> None:
        self._looked_at = self._clock()
        self._core_seconds = self._available()

    def _watch(self) -> None:
        while self._resumed.wait():
            self._resumed.clear()
            halved = self.present
            self._restart()
            time.sleep(FIRST_SECONDS)
            if self.look() is not halved:
                self._abort()
            while not self._resumed.wait(LOOK_SECONDS) and not self._paused:
                self.look()

    def _available(self) -> float | None:
        """Core seconds this process could have had since the machine started; None if Linux does not say."""
        ours = {f"cpu{core}" for core in os.sched_getaffinity(0)}
        try:
            idle = [int(row[4]) + int(row[5]) for row in self._rows("cpu") if row[0] in ours]
        except (ValueError, IndexError):
            return None
        if len(idle) < len(ours) or not any(idle):
            return None
        return sum(idle) / os.sysconf("SC_CLK_TCK") + time.process_time()

    def _rows(self, name: str) -> list[list[str]]:
        try:
            lines = self._stat.read_text().splitlines()
        except OSError:
            return []
        return [line.split() for line in lines if line.startswith(name)]
