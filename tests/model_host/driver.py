"""Drives a real model host process line by line."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, get_args

import msgspec

from model_host import protocol
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parent.parent.parent
TERMINAL = {each.__struct_config__.tag for each in get_args(protocol.Terminal)}


class HostProcess:
    """Starts a host; collects its events by id, and checks that no id gets two terminal ones.

    ``code`` is run by Python in the place of the module, to change something of it first.
    """

    def __init__(self, model: Path, *flags: str, wait_ready: bool = True, code: str | None = None) -> None:
        program = ["-m", "model_host"] if code is None else ["-c", code]
        command = [sys.executable, *program, "--model", str(model), "--threads", "1", *flags]
        self.process = subprocess.Popen(
            [*command, "--parent", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=ROOT,
        )
        self.events: dict[str | None, list[dict[str, Any]]] = defaultdict(list)
        self.ready: dict[str, Any] | None = None
        self.bad_lines: list[bytes] = []
        self.stderr = b""
        self._changed = threading.Condition()
        self._ended = False
        self._threads = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        for thread in self._threads:
            thread.start()
        if wait_ready:
            self.wait(lambda: self.ready is not None)

    # ------------------------------------------------------------------ talking

    def send(self, **message: Any) -> None:
        """Send one request."""
        self.raw(msgspec.json.encode(message) + b"\n")

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def generate(self, request_id: str, text: str | None = None, **fields: Any) -> None:
        """Send a greedy generation on one user message (or on ``prompt``/``messages`` in the fields)."""
        message: dict[str, Any] = {
            "op": "generate",
            "id": request_id,
            "max_tokens": 8,
            "sampling": {"temperature": 0},
        }
        if text is not None:
            message["messages"] = [{"role": "user", "content": text}]
        self.send(**(message | fields))

    def end(self, request_id: str | None, seconds: float = PATIENCE) -> dict[str, Any]:
        """Wait for the terminal event of an id."""
        self.wait(lambda: self._terminal(request_id) is not None, seconds, f"no end of {request_id}")
        found = self._terminal(request_id)
        assert found is not None
        return found

    def text(self, request_id: str, seconds: float = PATIENCE) -> str:
        """Wait for a generation to finish; return its text."""
        end = self.end(request_id, seconds)
        assert end["event"] == "finished", end
        return "".join(e["text"] for e in self.events[request_id] if e["event"] == "delta")

    def first(self, request_id: str, kind: str, seconds: float = PATIENCE) -> dict[str, Any]:
        """Wait for the first event of a kind."""

        def found() -> dict[str, Any] | None:
            return next((e for e in self.events[request_id] if e["event"] == kind), None)

        self.wait(lambda: found() is not None, seconds, f"no {kind} of {request_id}")
        event = found()
        assert event is not None
        return event

    def wait(
        self, condition: Any, seconds: float = PATIENCE, message: str = "nothing happened in time"
    ) -> None:
        """Wait until a condition on the events holds."""
        deadline = time.monotonic() + seconds
        with self._changed:
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0 or (self._ended and not condition()):
                    raise AssertionError(f"{message}; stderr: {self.stderr[-500:]!r}")
                self._changed.wait(left)

    def stop(self) -> int:
        """Shut the host down and check the invariants of its events."""
        if self.process.poll() is None:
            with contextlib.suppress(BrokenPipeError):
                self.send(op="shutdown", id="stop")
        status = self.process.wait(PATIENCE)
        self.stop_reading()
        self._close()
        assert self.bad_lines == []
        for request_id, events in self.events.items():
            if request_id is not None:
                ends = [e for e in events if e["event"] in TERMINAL]
                assert len(ends) == 1, (request_id, events[-5:])
                assert events[-1] is ends[0], f"{request_id} went on after its end"
        return status

    def stop_reading(self) -> bytes:
        """Wait until the events and the log of an ended host are read; return the log."""
        for thread in self._threads:
            thread.join(PATIENCE)
        return self.stderr

    def kill(self) -> None:
        """Kill the process, whatever its state."""
        self.process.kill()
        self.process.wait(PATIENCE)
        self.stop_reading()
        self._close()

    # ------------------------------------------------------------------ threads

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def _terminal(self, request_id: str | None) -> dict[str, Any] | None:
        return next((e for e in self.events[request_id] if e["event"] in TERMINAL), None)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            try:
                protocol.decode_event(line)
                event = msgspec.json.decode(line)
            except (protocol.ProtocolError, msgspec.DecodeError):
                self.bad_lines.append(line)
                continue
            with self._changed:
                event["_at"] = time.monotonic()
                self.take(event)
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def take(self, event: dict[str, Any]) -> None:
        """Keep an event."""
        if event["event"] == "ready":
            self.ready = event
        elif event["event"] != "loading":
            self.events[event["id"]].append(event)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.stderr += line
