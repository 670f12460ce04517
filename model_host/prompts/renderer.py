"""The client of the template worker: one rendering at a time, with a time limit."""

from __future__ import annotations

import contextlib
import selectors
import subprocess
import sys
import threading
from typing import Any

import msgspec

RENDER_TIMEOUT_SECONDS = 5.0


class ChatTemplateError(ValueError):
    """The chat template is missing, hostile, or refuses these messages."""


class TemplateWorker:
    """The child process that renders. Started on first use; killed and replaced on a timeout."""

    def __init__(self, timeout: float = RENDER_TIMEOUT_SECONDS) -> None:
        self._timeout = timeout
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the process ahead of the first rendering."""
        with self._lock:
            self._ensure()

    def render(self, request: dict[str, Any]) -> str:
        """Return the rendered text. Raises :class:`ChatTemplateError`."""
        with self._lock:
            process = self._ensure()
            assert process.stdin is not None
            try:
                process.stdin.write(msgspec.json.encode(request) + b"\n")
                process.stdin.flush()
                answer = self._read_answer(process)
            except OSError:  # TimeoutError and BrokenPipeError among them
                self._kill()
                raise ChatTemplateError(
                    "the model's chat template took too long or too much memory"
                ) from None
        if "error" in answer:
            raise ChatTemplateError(answer["error"])
        return answer["text"]

    def close(self) -> None:
        with self._lock:
            self._kill()

    def _ensure(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "model_host.prompts.template_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self._process

    def _read_answer(self, process: subprocess.Popen[bytes]) -> dict[str, str]:
        assert process.stdout is not None
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(self._timeout):
                    raise TimeoutError
                piece = process.stdout.read1(1 << 16)  # type: ignore[attr-defined]
                if not piece:
                    raise BrokenPipeError
                line += piece
        return msgspec.json.decode(line, type=dict[str, str])

    def _kill(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # a broken pipe: the process is dead
                    pipe.close()
        self._process.wait()
        self._process = None
