"""Shared parts of benchmarks: command lines, table cells, and servers and model hosts to measure."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.end_to_end.server import Server

ROOT = Path(__file__).resolve().parent.parent


def command_line(description: str | None) -> argparse.ArgumentParser:
    """A parser that prints the module's docstring as it is."""
    formatter = argparse.RawDescriptionHelpFormatter
    return argparse.ArgumentParser(description=description, formatter_class=formatter)


def spread(values: Sequence[float]) -> str:
    """The median, with the lowest and the highest value in brackets."""
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


@contextmanager
def new_server(model: Path | str, **settings: object) -> Iterator[Server]:
    """A gateway on a new data directory. ``settings`` are named like ``MODEL__THREADS``."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {f"HEARTH_{name}": str(value) for name, value in settings.items()}
        server = Server(Path(folder) / "data", model, env=environment)
        try:
            yield server
        finally:
            server.stop()


class BareHost:
    """A model host driven through its pipes, without a gateway."""

    def __init__(self, model: Path, *flags: str) -> None:
        command = [sys.executable, "-m", "model_host", "--model", str(model), "--parent", str(os.getpid())]
        self.process = subprocess.Popen(
            [*command, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        self.started = time.perf_counter()
        self._number = 0

    def send(self, op: str, **fields: Any) -> None:
        assert self.process.stdin is not None
        self._number += 1
        request = {"op": op, "id": f"r{self._number}", **fields}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()

    def events(self) -> Iterator[tuple[float, dict[str, Any]]]:
        """Yield events with the time of each. Raises RuntimeError for ``failed`` and at the end of the output."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "failed":
                raise RuntimeError(event["message"])
            yield time.perf_counter(), event
        raise RuntimeError("the model host ended")

    def until(self, kind: str) -> dict[str, Any]:
        """Skip to the next event of a kind and return it."""
        return next(event for _, event in self.events() if event["event"] == kind)

    def shut_down(self) -> None:
        """Let the host save its snapshots and end."""
        self.send("shutdown")
        self.until("closing")
        self.process.wait()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
