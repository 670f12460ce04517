"""Saved KV sequences on disk: an index of what is there, or about to be.

Files lie in a folder that is named after everything a state depends on (weights, build, type of the cache), so those
of another model are never read. The loop's thread asks the index; the writer's takes out of it what it could not write
and what it deleted. A file that is gone or damaged when it is wanted counts as never saved.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from model_host.batching.slots import common_prefix
from model_host.snapshots.snapshot_file import (
    SUFFIX,
    Snapshot,
    State,
    delete_file,
    file_name,
    read_header,
    read_state,
)
from model_host.snapshots.writer import Erased, SnapshotWriter


class SnapshotFolder:
    """What is saved of one model under ``root``. ``rewindable``: a restored sequence may be continued anywhere.

    With sliding windows it may not: llama.cpp saves the last window only, so a sequence is continued at its end.
    """

    def __init__(self, root: Path, key: str, *, limit: int, rewindable: bool) -> None:
        self.folder = root / hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
        self._known: dict[Path, Snapshot] = {}
        self._lock = threading.Lock()  # of the index
        self._rewindable = rewindable
        self.writer = SnapshotWriter(root, self.folder, limit, self._lost)

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
        for snapshot in self._index():
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
        path = self.folder / file_name(owner, tokens)
        return path in self._known and (self.writer.queued(path) is not None or os.path.exists(path))  # noqa: PTH110 - never raises

    def save(self, owner: str, shared: int, tokens: Sequence[int], state: State) -> bool:
        """Queue a sequence for the writer; False when too much is queued. What it extends goes once it is written."""
        snapshot = Snapshot(self.folder / file_name(owner, tokens), owner, shared, list(tokens))
        extended = [one for one in self._index() if _extends(snapshot, one)]
        with self._lock:  # the writer may fail before this ends
            if not self.writer.put(snapshot, state, extended):
                return False
            self._known[snapshot.path] = snapshot
        return True

    def load(self, snapshot: Snapshot) -> bytes | None:
        """The verified state of a snapshot; None (and it is forgotten) when it is damaged or gone."""
        state = self.writer.queued(snapshot.path) or read_state(snapshot)
        if state is None:
            self._lost(snapshot.path)
            delete_file(snapshot.path)
        else:
            with contextlib.suppress(OSError):
                os.utime(snapshot.path)  # the oldest use goes first
        return state

    def forget(self, owner: str, done: Erased) -> None:
        """Delete all that is saved of an owner, whatever model it was for. ``done`` is told of the end or the error."""
        with self._lock:
            self._known = {path: one for path, one in self._known.items() if one.owner != owner}
        self.writer.erase(owner, done)

    def _index(self) -> list[Snapshot]:
        with self._lock:
            return list(self._known.values())

    def _lost(self, path: Path) -> None:
        with self._lock:
            self._known.pop(path, None)


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
