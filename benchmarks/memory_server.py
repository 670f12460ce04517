"""A server for the benchmarks of conversations."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.end_to_end.server import Server


@contextmanager
def conversations_only(model: str, threads: int) -> Iterator[Server]:
    """A server with a data directory of its own, where nothing is noted beside the conversations."""
    settings = {
        "HEARTH_MODEL__THREADS": str(threads),
        "HEARTH_MEMORY__FACTS": "false",
        "HEARTH_MEMORY__TASKS": "false",
    }
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "data", model, env=settings)
        try:
            yield server
        finally:
            server.stop()
