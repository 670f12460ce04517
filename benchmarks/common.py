"""A model host driven over its pipes, without a gateway."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class BareHost:
    """Starts on construction; ``started`` is when, on the clock of ``time.perf_counter``."""

    def __init__(self, model: Path, *flags: str, env: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "model_host", "--model", str(model), "--parent", str(os.getpid())]
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, *flags],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": str(ROOT)} | dict(env or {}),
        )
        self._number = 0

    def send(self, op: str, **fields: Any) -> str:
        """Send a request; its id."""
        assert self.process.stdin is not None
        self._number += 1
        request = {"op": op, "id": f"r{self._number}", **fields}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        self.process.stdin.flush()
        return f"r{self._number}"

    def events(self) -> Iterator[tuple[float, dict[str, Any]]]:
        """Events as they come, each with its time. Raises RuntimeError for ``failed``, and at the end of output."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "failed":
                raise RuntimeError(event["message"])
            yield time.perf_counter(), event
        raise RuntimeError("the model host ended")

    def until(self, kind: str) -> dict[str, Any]:
        """The next event of a kind."""
        return next(event for _, event in self.events() if event["event"] == kind)

    def shut_down(self) -> None:
        """Ask it to end, which saves what is worth it, and wait."""
        self.send("shutdown")
        self.until("closing")
        self.process.wait()

    def close(self) -> None:
        """End it now."""
        self.process.kill()
        self.process.wait()
