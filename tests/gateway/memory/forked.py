"""Gateways that are forked from a process that has everything imported: they start in a moment, to be killed at once.

``python -m tests.gateway.memory.forked DATA_DIR PORT``: each line on standard input starts a gateway on the data
directory; what comes back is a line with its address and its process. Port 0 is any free one.
"""

from __future__ import annotations

import asyncio
import faulthandler
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from tests.gateway.memory.scripted_server import serve

ROOT = Path(__file__).parents[3]


class Forked:
    """One of the gateways: a process of its own, and no child of this one."""

    def __init__(self, url: str, process: int) -> None:
        self.url = url
        self._process = process
        self._handle = os.pidfd_open(process)

    def show_stacks(self) -> None:
        """Have it write to the log where each of its threads is."""
        signal.pidfd_send_signal(self._handle, signal.SIGUSR1)

    def end(self, how: signal.Signals) -> None:
        """Send the signal and wait until the process is gone."""
        signal.pidfd_send_signal(self._handle, how)
        if not select.select([self._handle], [], [], 60)[0]:
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            raise AssertionError(f"the gateway {self._process} did not end")
        os.close(self._handle)


class Nursery:
    """Starts gateways on one data directory, one after the other."""

    def __init__(self, data_dir: Path, port: int = 0) -> None:
        self._log = (data_dir.parent / "log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.gateway.memory.forked", str(data_dir), str(port)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
        )

    def start(self) -> Forked:
        """A gateway that listens."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        url, process = self._process.stdout.readline().split()
        return Forked(url.decode(), int(process))

    def close(self) -> None:
        """No more of them."""
        self._process.communicate()
        self._log.close()


def main(data_dir: Path, port: int) -> None:
    """Fork a gateway for each line."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    answers = os.dup(1)
    os.dup2(2, 1)  # what they log is no answer

    def tell(url: str) -> None:
        os.write(answers, f"{url} {os.getpid()}\n".encode())

    for _ in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            faulthandler.register(signal.SIGUSR1)
            asyncio.run(serve(data_dir, port, 0.0, tell))
            os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
