"""Other programs that want the processor."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def busy_loops() -> Iterator[int]:
    """One endless loop for each core that this process may use, while in the block; yields their number."""
    count = len(os.sched_getaffinity(0))
    # A loop ends by itself when this process dies: reading its stdin would block, so it looks at its parent.
    code = f"import os\nwhile os.getppid() == {os.getpid()}:\n    sum(range(100_000))"
    loops = [subprocess.Popen([sys.executable, "-S", "-c", code]) for _ in range(count)]
    try:
        yield count
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()
