"""Clients that ask without a pause while their model host is killed or stopped."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import TracebackType
from typing import Any, Self

import httpx2
import psutil

from tests.end_to_end.server import Server, alive
from tests.waiting import PATIENCE, eventually

_RETRY_SECONDS = 0.05  # a client in a hurry does not wait as long as Retry-After says


class Storm:
    """Counts how the requests of ``clients`` end. With ``embedding`` they want vectors, else streamed replies."""

    def __init__(self, server: Server, clients: int, *, embedding: bool = False) -> None:
        self.replies = self.retriable = 0
        self.wrong: list[str] = []  # requests that ended in any other way
        self.longest_gap = 0.0  # seconds without text or vectors for anybody
        self._server = server
        self._embedding = embedding
        self._lock = threading.Lock()
        self._heard_at = 0.0  # when the last text came
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._client, args=(n,)) for n in range(clients)]

    def __str__(self) -> str:
        return (
            f"{self.replies} replies, {self.retriable} retriable errors, {len(self.wrong)} others, "
            f"longest gap {self.longest_gap:.1f} s"
        )

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(2 * PATIENCE)
            assert not thread.is_alive(), "a client hangs"

    def kill(self) -> int:
        """SIGKILL the model host, whatever it does just now, and return its process id."""
        return self._signal(signal.SIGKILL)

    def stop(self) -> int:
        """SIGSTOP it: it lives, and does nothing any more."""
        return self._signal(signal.SIGSTOP)

    def _signal(self, number: signal.Signals) -> int:
        def reached() -> int | None:
            pid = self.host()
            if pid is None:
                return None
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                return None
            return pid

        pid = eventually(reached, "no model host came up")
        assert pid is not None
        return pid

    def host(self) -> int | None:
        """Process id of the living model host, also before the gateway's own health tells it."""
        for process in psutil.Process(self._server.process.pid).children():
            try:
                command = process.cmdline()
            except psutil.Error:
                continue
            if (
                "model_host" in command
                and ("--embedding" in command) == self._embedding
                and alive(process.pid)
            ):
                return process.pid
        return None

    def served_since(self, moment: float, patience: float = PATIENCE) -> float:
        """Wait for text after ``moment`` (monotonic) and return how many seconds after it came."""
        eventually(lambda: self._heard_at > moment, "there was no service", patience)
        return self._heard_at - moment

    def _client(self, number: int) -> None:
        with httpx2.Client(base_url=self._server.url, timeout=2 * PATIENCE) as client:
            while not self._over.is_set():
                try:
                    outcome = self._vectors(client) if self._embedding else self._stream(client, number)
                except httpx2.HTTPError as error:
                    outcome = f"{type(error).__name__}: {error}"
                with self._lock:
                    self._count(outcome)
                if outcome == "retriable":
                    self._over.wait(_RETRY_SECONDS)

    def _count(self, outcome: str) -> None:
        if outcome == "reply":
            self.replies += 1
        elif outcome == "retriable":
            self.retriable += 1
        else:
            self.wrong.append(outcome)

    def _hear(self) -> None:
        with self._lock:
            now = time.monotonic()
            if self._heard_at:
                self.longest_gap = max(self.longest_gap, now - self._heard_at)
            self._heard_at = now

    def _vectors(self, client: httpx2.Client) -> str:
        reply = client.post("/v1/embeddings", json={"model": "default", "input": ["word " * 40] * 8})
        if reply.status_code == 200:
            self._hear()
            return "reply"
        return _refused(reply)

    def _stream(self, client: httpx2.Client, number: int) -> str:
        body: dict[str, Any] = {
            "model": "default",
            "messages": [{"role": "user", "content": f"client {number}"}],
            "max_tokens": 400,
            "ignore_eos": True,
            "stream": True,
        }
        with client.stream("POST", "/v1/chat/completions", json=body) as reply:
            if reply.status_code != 200:
                reply.read()
                return _refused(reply)
            last = ""
            for line in reply.iter_lines():
                last = line or last
                if '"error"' in line:
                    return "retriable" if "model_unavailable" in line else line
                if '"content"' in line:
                    self._hear()
            return "reply" if last == "data: [DONE]" else f"ended with {last!r}"


def _refused(reply: httpx2.Response) -> str:
    if reply.status_code == 503 and reply.headers.get("retry-after"):
        return "retriable"
    return f"status {reply.status_code}: {reply.text[:300]}"
