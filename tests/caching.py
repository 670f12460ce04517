"""What tests install, kept in the user's cache."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cached(name: str, fill: Callable[[Path], object]) -> Path:
    """The folder ``name`` of the cache; one process at a time lets ``fill`` make it, where it is missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hearth-tests"
    cache.mkdir(parents=True, exist_ok=True)
    target = cache / name
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=cache, ignore_cleanup_errors=True) as folder:
                made = Path(folder, "made")
                made.mkdir()
                fill(made)
                made.rename(target)
    return target
