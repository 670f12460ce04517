"""The index of KV sequences that are on disk or queued for writing.

The folder's name is a hash of everything a state depends on (weights, adapter, build, cache type), so states of
another model or adapter are never read. The loop's thread queries the index; the writer's thread removes files that it
could not write or has deleted. A missing or damaged file counts as never saved.
"""

from __future__ import annotations

import hashlib
import math
import os
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from model_host.batching.slots import common_prefix
from model_host.snapshots.compression import decompress
from model_host.snapshots.snapshot_file import (
    SUFFIX,
    Snapshot,
    State,
    delete_file,
    file_name,
    is_shared,
    read_content,
    read_header,
)
from model_host.snapshots.writer import SnapshotWriter

_HALF_LIFE = 86_400.0  # seconds
_MOST_AHEAD = 10 * _HALF_LIFE  # a thousand uses at once; a later time is a clock error


class SnapshotFolder:
    """The snapshots of one model under ``root``, with one adapter or none. Folders may share the ``writer``."""

    def __init__(self, root: Path, key: str, writer: SnapshotWriter) -> None:
        self.folder = root / hashlib.blake2b(key.encode(), digest_size=8).hexdigest()
        self._known: dict[Path, Snapshot] = {}
        self._lock = threading.Lock()  # of the index
        self.writer = writer
        writer.on_lost.append(self._lost)

    def scan(self) -> None:
        """Read the headers of all files; delete damaged files and leftovers of a crash. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for path in self.folder.iterdir():
            snapshot = read_header(path) if path.suffix == SUFFIX else None
            if snapshot is None:
                delete_file(path)
            else:
                self._known[path] = snapshot

    def find(
        self, tokens: Sequence[int], shared: int, owner: str, *, besides: Sequence[Snapshot] = ()
    ) -> tuple[Snapshot | None, int]:
        """Find the snapshot with the longest prefix of ``tokens`` that can be continued; return it and the length.

        Owners are fenced as in :meth:`model_host.batching.slots.SlotTable.find`. Snapshots in ``besides`` are skipped.
        """
        best: Snapshot | None = None
        length = 0
        for snapshot in self._index():
            limit = len(tokens) - 1
            if snapshot.owner != owner:
                limit = min(limit, shared, snapshot.shared)
            if snapshot.continuable(limit) <= length or snapshot in besides:
                continue
            usable = snapshot.continuable(common_prefix(snapshot.tokens, tokens, limit))
            if usable > length:
                best, length = snapshot, usable
        return best, length

    def outgrown(
        self, owner: str, shared: int, tokens: Sequence[int], stops: Collection[int]
    ) -> list[Snapshot]:
        """List earlier states of the same conversation, which later prompts need only where they end at a stop."""
        return [
            old
            for old in self._index()
            if old.owner == owner
            and shared < len(old.tokens) < len(tokens)
            and len(old.tokens) not in stops
            and old.tokens == tokens[: len(old.tokens)]
        ]

    def covers(
        self, tokens: Sequence[int], shared: int, owner: str, *, besides: Sequence[Snapshot] = ()
    ) -> bool:
        """Whether a snapshot can be continued where ``tokens`` end. Counts as a use of it."""
        snapshot, length = self.find([*tokens, -1], shared, owner, besides=besides)
        return snapshot is not None and length == len(tokens) and self.has(snapshot.owner, snapshot.tokens)

    def begins_another(self, tokens: Sequence[int], owner: str, *, besides: Sequence[int]) -> bool:
        """Whether a conversation other than ``besides`` begins with ``tokens``, too.

        With the ``owner`` "" (shared text), conversations of all owners are compared.
        """
        return any(
            old.tokens[: len(tokens)] == tokens
            and common_prefix(old.tokens, besides, len(old.tokens)) < len(old.tokens)
            and (old.owner == owner or (not owner and old.shared >= len(tokens)))
            for old in self._index()
        )

    def has(self, owner: str, tokens: Sequence[int]) -> bool:
        """Whether exactly this sequence is saved or queued. Counts as a use of it."""
        path = self.folder / file_name(owner, tokens)
        if path not in self._known:
            return False
        if self.writer.queued(path) is not None:
            return True
        return _touch(path)

    def save(
        self,
        owner: str,
        shared: int,
        tokens: Sequence[int],
        state: State,
        stretches: list[tuple[int, int]],
        outgrown: Sequence[Snapshot],
    ) -> bool:
        """Queue a sequence for the writer; return False when its queue is full.

        The writer deletes ``outgrown`` once the sequence is on disk. With a limit of 0 nothing is saved.
        """
        if not (self.writer.limit if owner else self.writer.shared_limit):
            return True
        path = self.folder / file_name(owner, tokens)
        snapshot = Snapshot(path, owner, shared, list(tokens), stretches)
        with self._lock:  # the writer may fail before this block ends
            if not self.writer.put(snapshot, state, outgrown):
                return False
            self._known[snapshot.path] = snapshot
        return True

    def load(self, snapshot: Snapshot) -> State | None:
        """Return the verified state; if it is damaged or missing, drop the snapshot and return None."""
        state = self.writer.queued(snapshot.path)
        if state is not None:
            return state
        content = read_content(snapshot)
        if content is None:
            self._lost(snapshot.path)
            delete_file(snapshot.path)
            return None
        _touch(snapshot.path)
        return decompress(content)

    def forget(self, owner: str) -> None:
        """Take an owner's files out of the index, before the writer erases them."""
        with self._lock:
            self._known = {path: one for path, one in self._known.items() if one.owner != owner}

    def _index(self) -> list[Snapshot]:
        with self._lock:
            return list(self._known.values())

    def _lost(self, path: Path) -> None:
        with self._lock:
            self._known.pop(path, None)


def _touch(path: Path) -> bool:
    """Record a use in the modification time, by which the writer evicts; return False when the file is missing.

    For shared text the time encodes the number of uses, each of which decays by half in ``_HALF_LIFE``: one use sets it
    to now, two at once to a half-life from now.
    """
    now = time.time()
    try:
        ahead = min(path.stat().st_mtime - now, _MOST_AHEAD)
        heat = _HALF_LIFE * math.log2(1 + 2 ** (ahead / _HALF_LIFE)) if is_shared(path) else 0
        os.utime(path, (now, now + heat))
    except OSError:
        return False
    return True
