"""A control group with a memory limit, of either version, for the processes of a test."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_LIMIT = {1: "memory.limit_in_bytes", 2: "memory.max"}
_USED = {1: "memory.usage_in_bytes", 2: "memory.current"}
_EVENTS = {1: "memory.oom_control", 2: "memory.events"}


class MemoryGroup:
    """``folder`` is the group's; ``version`` is 1 or 2."""

    def __init__(self, folder: Path, version: int) -> None:
        self.folder = folder
        self._version = version

    def add(self, pid: int) -> None:
        """Take in a process; its later children and its later pages belong to the group."""
        (self.folder / "cgroup.procs").write_text(str(pid))

    def limit(self, size: int | None) -> None:
        """Limit the memory to a number of bytes; None removes the limit."""
        none = "-1" if self._version == 1 else "max"
        (self.folder / _LIMIT[self._version]).write_text(none if size is None else str(size))

    @property
    def used(self) -> int:
        """Bytes that are charged to the group."""
        return int((self.folder / _USED[self._version]).read_text())

    @property
    def killed(self) -> int:
        """Processes that the kernel has ended for want of memory."""
        lines = (self.folder / _EVENTS[self._version]).read_text().splitlines()
        return int(dict(line.split() for line in lines)["oom_kill"])


@contextmanager
def memory_group() -> Iterator[MemoryGroup]:
    """Make a group and remove it. Skips where none can be made."""
    if os.geteuid() != 0:
        pytest.skip("only root can make a control group")
    folder, version = _place()
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        if not (folder / _LIMIT[version]).exists():
            pytest.skip("the memory controller is not given to control groups here")
        yield MemoryGroup(folder, version)
    finally:
        _remove(folder)


def _place() -> tuple[Path, int]:
    name = f"hearth-memory-{os.getpid()}"
    mounts = [line.split()[1:4] for line in Path("/proc/mounts").read_text().splitlines()]
    for place, kind, options in mounts:
        if kind == "cgroup" and "memory" in options.split(","):
            return Path(place) / name, 1
    for place, kind, _ in mounts:
        if kind == "cgroup2":
            return Path(place) / name, 2
    return pytest.skip("this machine has no control groups")


def _remove(folder: Path) -> None:
    """A group can be removed a moment after its last process has ended."""
    deadline = time.monotonic() + 10
    while True:
        try:
            folder.rmdir()
            return
        except OSError:
            assert time.monotonic() < deadline, f"{folder} is left behind"
            time.sleep(0.1)
