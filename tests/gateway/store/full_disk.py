"""A disk that fills up: SQLite's own VFS, whose writes can be made to fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import apsw


@contextmanager
def full_disk() -> Iterator[FullDisk]:
    """Whatever opens a database in the block has it on this disk."""
    disk = FullDisk()
    try:
        yield disk
    finally:
        disk.unregister()


class FullDisk(apsw.VFS):
    """Writes fail while ``full`` is set."""

    def __init__(self) -> None:
        self.full = False
        super().__init__("full-disk", base="unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(name, flags, self)


class _File(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], disk: FullDisk) -> None:
        self._disk = disk
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        if self._disk.full:
            raise apsw.FullError
        super().xWrite(data, offset)
