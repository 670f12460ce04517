"""The thread that writes and erases snapshots one by one, so that the loop never waits for a disk."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from model_host.protocol import owner_digest
from model_host.snapshots.compression import compress
from model_host.snapshots.snapshot_file import (
    PARTIAL,
    Snapshot,
    State,
    delete_file,
    file_size,
    is_shared,
    write_file,
)

KEPT_FREE_BYTES = 1 << 30  # a disk with less free space than this is not written to
_MOST_WAITING = 3  # files; one conversation may need all, and states are large

Erased = Callable[[OSError | None], None]  # called in the writer's thread at the end of an erasure


@dataclass(frozen=True, slots=True)
class _Write:
    snapshot: Snapshot
    state: State
    replaced: Sequence[Snapshot]


@dataclass(frozen=True, slots=True)
class _Erase:
    owner: str
    done: Erased


class SnapshotWriter:
    """Writes snapshots within two limits of bytes under ``root``.

    ``limit`` is for files of owners, of which the least recently used is evicted, ``shared_limit`` for files of shared
    text, of which the least used is evicted. All of ``on_lost`` are called in the writer's thread with each path whose
    snapshot is gone.
    """

    def __init__(self, root: Path, limit: int, shared_limit: int) -> None:
        self.saved = 0  # files written
        self.limit, self.shared_limit = limit, shared_limit
        self._root = root
        self.on_lost: list[Callable[[Path], None]] = []
        self._jobs: deque[_Write | _Erase] = deque()
        self._present: _Write | _Erase | None = None  # the job in progress
        self._changed = threading.Condition()
        self._complained = False
        self._thread = threading.Thread(target=self._work, name="snapshots", daemon=True)
        self._thread.start()

    def put(self, snapshot: Snapshot, state: State, replaced: Sequence[Snapshot]) -> bool:
        """Queue a file; those it replaces are deleted once it is written. Return False when the queue is full."""
        with self._changed:
            if sum(isinstance(job, _Write) for job in (self._present, *self._jobs)) >= _MOST_WAITING:
                return False
            self._jobs.append(_Write(snapshot, state, replaced))
            self._changed.notify_all()
            return True

    def queued(self, path: Path) -> bytes | None:
        """Return the state that is queued for this file, None if there is none."""
        with self._changed:
            writes = [job for job in (self._present, *self._jobs) if isinstance(job, _Write)]
        return next((bytes(write.state) for write in writes if write.snapshot.path == path), None)

    def flush(self, seconds: float) -> bool:
        """Wait until the queue is empty; return False after ``seconds``."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs and self._present is None, seconds)

    def erase(self, owner: str, done: Erased) -> None:
        """Delete an owner's files of all models, including the one being written; drop queued ones."""
        with self._changed:
            others = [
                job for job in self._jobs if not (isinstance(job, _Write) and job.snapshot.owner == owner)
            ]
            self._jobs = deque([*others, _Erase(owner, done)])
            self._changed.notify_all()

    # ------------------------------------------------------------------ the thread

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._jobs))
                job = self._present = self._jobs.popleft()
            if isinstance(job, _Write):
                self._write(job)
            else:
                job.done(self._erase(job.owner))
            del job  # with a large state
            with self._changed:
                self._present = None
                self._changed.notify_all()

    def _write(self, job: _Write) -> None:
        try:
            content = compress(job.state)
            self._make_room(file_size(job.snapshot, content), shared=not job.snapshot.owner)
            write_file(job.snapshot, content)
        except OSError as error:
            self._lost(job.snapshot.path)
            if not self._complained:  # only once: a full disk would fill the log as well
                self._complained = True
                print(f"a snapshot cannot be saved: {error}", file=sys.stderr, flush=True)  # noqa: T201
            return
        self.saved += 1
        for old in job.replaced:
            self._lost(old.path)
            delete_file(old.path)

    def _lost(self, path: Path) -> None:
        for report in self.on_lost:
            report(path)

    def _erase(self, owner: str) -> OSError | None:
        """Delete the owner's files and all partial files; go on after an error and return the first one."""
        prefix = f"{owner_digest(owner)}-"
        problem = None
        try:
            folders = [folder for folder in self._root.iterdir() if folder.is_dir()]
            paths = [path for folder in folders for path in folder.iterdir()]
        except OSError as error:
            return error
        for path in paths:
            if path.name.startswith(prefix) or path.suffix == PARTIAL:
                try:
                    path.unlink(missing_ok=True)
                except OSError as error:
                    problem = problem or error
        return problem

    def _make_room(self, size: int, *, shared: bool) -> None:
        """Evict files until ``size`` more bytes are within the limit. Raises OSError if that is impossible."""
        limit = self.shared_limit if shared else self.limit
        if size > limit:
            raise OSError(errno.EFBIG, f"it has {size} bytes, and the limit of all files is {limit}")
        if _free_bytes(self._root) < KEPT_FREE_BYTES + size:
            raise OSError(errno.ENOSPC, f"{self._root} would have less than {KEPT_FREE_BYTES} bytes free")
        found = [file for file in _files(self._root) if is_shared(file[0]) == shared]
        files = sorted(found, key=lambda file: file[1])
        total = sum(bytes_ for _, _, bytes_ in files)
        for path, _, bytes_ in files:
            if total + size <= limit:
                return
            with contextlib.suppress(OSError):
                path.unlink()
                self._lost(path)
                total -= bytes_
        if total + size > limit:
            raise OSError(errno.EACCES, f"colder files in {self._root} cannot be deleted to make room")


def _files(root: Path) -> Iterator[tuple[Path, float, int]]:
    for path in root.glob("*/*"):
        with contextlib.suppress(OSError):
            status = path.stat()
            yield path, status.st_mtime, status.st_size


def _free_bytes(folder: Path) -> int:
    try:
        status = os.statvfs(folder)
    except OSError:
        return 0
    return status.f_bavail * status.f_frsize
