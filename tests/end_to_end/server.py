"""A real ``hearth start`` in a process of its own, for tests and benchmarks."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx2
import psutil

from tests.waiting import PATIENCE, eventually

START_SECONDS = 2 * PATIENCE


class Server:
    """Starts on construction; :meth:`stop` ends it and checks that nothing is left behind."""

    def __init__(
        self, data_dir: Path, model: Path | str, *flags: str, env: Mapping[str, str] | None = None
    ) -> None:
        command = [sys.executable, "-m", "gateway.cli.main", "start", "--port", "0"]
        command += ["--data-dir", str(data_dir), "--model", str(model), *flags]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("HEARTH_")}
        settings = {"HEARTH_MODEL__THREADS": "1", "XDG_CONFIG_HOME": str(data_dir / "xdg")}
        settings["PYTHONPATH"] = str(Path(__file__).parents[2])  # this tree's program, whatever is installed
        self.data_dir = data_dir
        self.log = data_dir / "server.log"
        data_dir.mkdir(parents=True, exist_ok=True)
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=log,
                env=clean | settings | dict(env or {}),
                start_new_session=True,
                cwd=data_dir,
            )
        self.url = self._listening()
        self.client = httpx2.Client(base_url=self.url, timeout=60)

    def _listening(self) -> str:
        assert self.process.stdout is not None
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            line = self.process.stdout.readline().decode()
            if line.startswith("listening on "):
                return line.removeprefix("listening on ").strip()
            if not line and self.process.poll() is not None:
                break
        raise AssertionError(f"the server did not start: {self.log.read_text()[-2000:]}")

    def health(self) -> dict[str, Any]:
        """``GET /admin/health``."""
        reply = self.client.get("/admin/health")
        reply.raise_for_status()
        answer: dict[str, Any] = reply.json()
        return answer

    def host_pid(self) -> int | None:
        """Process id of the model host, None while there is none."""
        pid: int | None = self.health()["host"]["pid"]
        return pid

    def cells(self) -> int:
        """Cells of the KV cache in use: one for each token that was read or made and may be needed again."""
        return int(self.health()["kv"]["used"])

    def finished_tokens(self) -> int:
        """Tokens of all generations that came to their end."""
        found = re.search(r"^generation_tokens_total (\S+)", self.client.get("/metrics").text, re.MULTILINE)
        assert found is not None
        return int(float(found[1]))

    def rss(self) -> int:
        """Resident bytes of the gateway process alone."""
        return int(psutil.Process(self.process.pid).memory_info().rss)

    def children(self) -> list[psutil.Process]:
        """All living descendants of the gateway."""
        return [p for p in psutil.Process(self.process.pid).children(recursive=True) if alive(p.pid)]

    def kill(self) -> None:
        """SIGKILL the gateway alone."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def stop(self, grace: float = PATIENCE) -> int:
        """SIGTERM, wait, and check that every child is gone too."""
        family = self.children() if self.process.poll() is None else []
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(grace)
        self.client.close()
        assert self.process.stdout is not None
        self.process.stdout.close()
        eventually(lambda: not any(alive(p.pid) for p in family), "children are left behind")
        return status


def alive(pid: int) -> bool:
    """Whether a process runs; zombies do not count."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
