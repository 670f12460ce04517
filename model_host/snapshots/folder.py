"""Saved KV sequences on disk: an index of what is there, and a thread that writes.

Files lie in a folder that is named after everything a state depends on (weights, build, type of the cache), so those
of another model are never read. The index belongs to the loop's thread; the writer's touches files only, and a
file that is gone or damaged when it is wanted counts as never saved.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from model_host.batching.slots import common_prefix
from model_host.protocol import owner_digest
from model_host.snapshots.snapshot_file import (
    SUFFIX,
    Snapshot,
    State,
    delete_file,
    file_name,
    file_size,
    read_header,
    read_state,
    write_file,
)

KEPT_FREE_BYTES = 1 << 30  # a disk with less free space than this is not written to


class SnapshotFolder:
    """What is saved of one model under ``root``. ``rewindable``: a restored sequence may be continued anywhere.

    With sliding windows it may not: llama.cpp saves the last window only, so a sequence is continued at its end.
    """

    def __init__(self, root: Path, key: str, *, limit: int, rewindable: bool) -> None:
        self.folder = root / hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
        self._known: dict[Path, Snapshot] = {}
        self._rewindable = rewindable
        self.writer = SnapshotWriter(root, self.folder, limit)

    def scan(self) -> None:
        """Read the headers of what is there. Damaged files and leftovers of a crash are deleted. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in self.folder.iterdir():
            snapshot = read_header(path) if path.suffix == SUFFIX else None
            if snapshot is None:
                delete_file(path)
            else:
                self._known[path] = snapshot

    def find(self, tokens: Sequence[int], shared: int, owner: str) -> tuple[Snapshot | None, int]:
        """The snapshot with the longest prefix of ``tokens`` that can be continued, and that length.

        The fence is that of :meth:`model_host.batching.slots.SlotTable.find`.
        """
        best: Snapshot | None = None
        length = 0
        for snapshot in self._known.values():
            limit = len(tokens) - 1
            if snapshot.owner != owner:
                limit = min(limit, shared, snapshot.shared)
            whole = len(snapshot.tokens)
            if limit <= length or not (self._rewindable or _may_begin(snapshot.tokens, tokens, limit)):
                continue
            common = common_prefix(snapshot.tokens, tokens, limit)
            if common > length and (self._rewindable or common == whole):
                best, length = snapshot, common
        return best, length

    def has(self, owner: str, tokens: Sequence[int]) -> bool:
        """Whether exactly this sequence is saved, or about to be."""
        return self.folder / file_name(owner, tokens) in self._known

    def save(self, owner: str, shared: int, tokens: Sequence[int], state: State) -> bool:
        """Queue a sequence for the writer; False when too much is queued. What it extends is replaced by it."""
        snapshot = Snapshot(self.folder / file_name(owner, tokens), owner, shared, list(tokens))
        extended = [one for one in self._known.values() if _extends(snapshot, one)]
        if not self.writer.put(snapshot, state, [one.path for one in extended]):
            return False
        for one in extended:
            del self._known[one.path]
        self._known[snapshot.path] = snapshot
        return True

    def load(self, snapshot: Snapshot) -> bytes | None:
        """The verified state of a snapshot; None (and it is forgotten) when it is damaged or gone."""
        state = self.writer.queued(snapshot.path) or read_state(snapshot)
        if state is None:
            self._known.pop(snapshot.path, None)
            delete_file(snapshot.path)
        else:
            with contextlib.suppress(OSError):
                os.utime(snapshot.path)  # the oldest use goes first
        return state

    def forget(self, owner: str) -> None:
        """Delete all that is saved of an owner, whatever model it was for."""
        self._known = {path: one for path, one in self._known.items() if one.owner != owner}
        self.writer.forget(owner)


class SnapshotWriter:
    """Writes files in a thread, in order. ``limit``: bytes of all files under ``root``, oldest first out."""

    def __init__(self, root: Path, folder: Path, limit: int) -> None:
        self.saved = 0  # files written
        self._root = root
        self._folder = folder
        self._limit = limit
        self._jobs: deque[tuple[Snapshot, State, list[Path]]] = deque()
        self._changed = threading.Condition()
        self._complained = False
        self._thread = threading.Thread(target=self._work, name="snapshots", daemon=True)
        self._thread.start()

    def put(self, snapshot: Snapshot, state: State, replaced: list[Path]) -> bool:
        """Queue a file, to be written before those it replaces are deleted; False when two are waiting already."""
        with self._changed:
            if len(self._jobs) >= 2:  # states are large
                return False
            self._jobs.append((snapshot, state, replaced))
            self._changed.notify_all()
            return True

    def queued(self, path: Path) -> bytes | None:
        """The state that is to be written to this file, if it waits for that."""
        with self._changed:
            return next((bytes(state) for each, state, _ in self._jobs if each.path == path), None)

    def flush(self, seconds: float) -> bool:
        """Wait until everything is written; False when that took too long."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._jobs, seconds)

    def forget(self, owner: str) -> None:
        """Delete an owner's files, those that are being written included."""
        self.flush(60.0)
        for path in self._root.glob(f"*/{owner_digest(owner)}-*"):
            delete_file(path)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: bool(self._jobs))
                snapshot, state, replaced = self._jobs[0]
            try:
                self._write(snapshot, state, replaced)
            except OSError as error:
                if not self._complained:  # once: a full disk would fill the log as well
                    self._complained = True
                    print(f"snapshots cannot be saved: {error}", file=sys.stderr, flush=True)  # noqa: T201
            with self._changed:
                self._jobs.popleft()
                self._changed.notify_all()

    def _write(self, snapshot: Snapshot, state: State, replaced: list[Path]) -> None:
        if self._make_room(file_size(snapshot, state)):
            write_file(snapshot, state)
            self.saved += 1
        for path in replaced:
            delete_file(path)

    def _make_room(self, size: int) -> bool:
        """Delete the oldest files until ``size`` bytes more are within the limit, if they can be."""
        if size > self._limit or _free_bytes(self._folder) < KEPT_FREE_BYTES + size:
            return False
        files = sorted(_files(self._root), key=lambda file: file[1])
        total = sum(bytes_ for _, _, bytes_ in files)
        for path, _, bytes_ in files:
            if total + size <= self._limit:
                break
            delete_file(path)
            total -= bytes_
        return True


def _may_begin(saved: Sequence[int], tokens: Sequence[int], limit: int) -> bool:
    """Cheap, for the many that do not: compares one token."""
    return 0 < len(saved) <= limit and saved[-1] == tokens[len(saved) - 1]


def _extends(new: Snapshot, old: Snapshot) -> bool:
    """A conversation that went on: its earlier state will not be asked for again."""
    return (
        new.owner == old.owner
        and len(old.tokens) < len(new.tokens)
        and old.tokens == new.tokens[: len(old.tokens)]
        and len(old.tokens) > new.shared  # the shared prefix stays for other conversations
    )


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
