"""A file system that forgets what was not synced: SQLite's VFS under a simulated power cut.

Writes reach the real file at once, as they would the page cache, and are remembered; a sync makes a file's writes
durable. After a cut, each file has its durable bytes and a random choice of the writes since then, the last one
perhaps torn: what a disk may show after the power came back.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import apsw

_SECTOR = 512


class Disk:
    """What would be on the platters: durable bytes by path, and the writes since the last sync."""

    def __init__(self, cut_after: int) -> None:
        self.durable: dict[str, bytearray] = {}
        self.pending: dict[str, list[tuple[int, bytes | None]]] = {}
        self.dark = False  # the power is gone: nothing counts any more
        self._left = cut_after

    def _step(self) -> bool:
        """One more operation; whether there still is power for it."""
        self.dark = self.dark or self._left == 0
        self._left -= 1
        return not self.dark

    def write(self, path: str, offset: int, data: bytes | None) -> None:
        """Remember a write, or (None) a truncation to ``offset``."""
        if self._step():
            self.pending.setdefault(path, []).append((offset, data))

    def sync(self, path: str) -> None:
        """Everything written to the file so far is on the platters."""
        if not self._step():
            return
        content = self.durable.setdefault(path, bytearray())
        for offset, data in self.pending.pop(path, []):
            _apply(content, offset, data)

    def delete(self, path: str) -> None:
        """The file is gone, for good."""
        if not self._step():
            return
        self.durable.pop(path, None)
        self.pending.pop(path, None)

    def after_cut(self, folder: Path, chance: random.Random) -> Path:
        """The files as they may be found after the power is back, in ``folder``; returns the database's path."""
        found = folder / "after.db"
        for path in {*self.durable, *self.pending}:
            content = bytearray(self.durable.get(path, b""))
            for offset, data in self.pending.get(path, []):
                if chance.random() < 0.5:
                    torn = data is not None and chance.random() < 0.3
                    kept = data[: chance.randrange(0, len(data) + 1, _SECTOR)] if torn and data else data
                    _apply(content, offset, kept)
            suffix = path[path.index(".db") + 3 :]
            if suffix != "-shm":  # the first connection rebuilds the index of the log
                Path(f"{found}{suffix}").write_bytes(content)
        return found


def _apply(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
        return
    if len(content) < offset:
        content.extend(b"\0" * (offset - len(content)))
    content[offset : offset + len(data)] = data


class PowerCutVFS(apsw.VFS):
    """SQLite's own VFS, watched by a :class:`Disk`."""

    def __init__(self, name: str, disk: Disk) -> None:
        self.disk = disk
        super().__init__(name, base="unix")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _File(name, flags, self.disk)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        super().xDelete(filename, syncdir)
        self.disk.delete(filename)


class _File(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], disk: Disk) -> None:
        self._path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._disk = disk
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        super().xWrite(data, offset)
        self._disk.write(self._path, offset, bytes(data))

    def xTruncate(self, size: int) -> None:  # noqa: N802
        super().xTruncate(size)
        self._disk.write(self._path, size, None)

    def xSync(self, flags: int) -> None:  # noqa: N802
        # The real sync would only take time: what is durable is decided by the disk.
        self._disk.sync(self._path)
