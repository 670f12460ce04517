"""Commands on a pseudo terminal."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import PATIENCE, eventually

_ON_TERMINAL = """
import fcntl, signal, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests in a background job inherit that it is ignored
from gateway.cli.main import main
main()
"""


class Terminal:
    """A command line on a pseudo terminal. Use :func:`terminal`, which ends the process of a failed test."""

    def __init__(self, environment: dict[str, str], *arguments: str) -> None:
        self.ours, theirs = pty.openpty()
        self.shown = b""
        # The terminal must control the process for Ctrl-C to become a signal.
        self.process = subprocess.Popen(
            [sys.executable, "-c", _ON_TERMINAL, *arguments],
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        """Type once the program waits for input.

        Python delays a Ctrl-C that arrives between the prompt and the wait for a key until the next key.
        """
        eventually(self._waits, "the program does not wait for input")
        os.write(self.ours, text.encode())

    def _waits(self) -> bool:
        state = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "R"

    def wait_for(self, condition: Callable[[str], bool]) -> str:
        """Read until the text shown since the last call fits."""
        seen, deadline = b"", time.monotonic() + PATIENCE
        while not condition(seen.decode("utf-8", "replace")):
            assert time.monotonic() < deadline, seen
            if not select.select([self.ours], [], [], 1.0)[0]:
                continue
            try:
                seen += os.read(self.ours, 65536)
            except OSError:  # Linux ends a terminal's output with EIO
                break
        self.shown += seen
        return seen.decode("utf-8", "replace")

    def end(self) -> int:
        return self.process.wait(PATIENCE)


@contextmanager
def terminal(environment: dict[str, str], *arguments: str) -> Iterator[Terminal]:
    """Run a command line on a terminal. A process that is still alive at the end of the block is killed."""
    opened = Terminal(environment, *arguments)
    try:
        yield opened
    finally:
        opened.process.kill()
        opened.process.wait()
        os.close(opened.ours)
