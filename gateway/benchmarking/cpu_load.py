"""CPU load from other processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Each loop ends when the process that started it is gone.
_LOOPS = """
import os, sys
parent = int(sys.argv[1])
for _ in range(int(sys.argv[2]) - 1):
    leader = os.getpid()
    if os.fork() == 0:
        parent = leader
        break
while os.getppid() == parent:
    sum(range(100_000))
"""


@contextmanager
def busy_loops(count: int = 0) -> Iterator[int]:
    """Run ``count`` endless loops while the block runs, by default one per usable core; yields their number.

    They have a session of their own, as another program has: Linux shares cores between sessions first.
    """
    count = count or len(os.sched_getaffinity(0))
    command = [sys.executable, "-S", "-c", _LOOPS, str(os.getpid()), str(count)]
    leader = subprocess.Popen(command, start_new_session=True)
    try:
        yield count
    finally:
        os.killpg(leader.pid, signal.SIGKILL)
        leader.wait()
