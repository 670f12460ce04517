"""What is worth saving of the KV cache, and when; and what is brought back for a prompt.

Saved are sequences that a next prompt can be expected to extend: the end of a finished turn, and a prefix that several
sequences share. Saving happens when the host has been idle for a moment, before cells are given up, and at the end;
so a host that is let go, killed or replaced costs its conversations little.

``boundary`` (:mod:`model_host.snapshots.boundary`) says up to where a sequence will stand the same in the next
prompt; it is saved up to there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from model_host.batching import request
from model_host.batching.slots import Slot, SlotTable
from model_host.snapshots.folder import SnapshotFolder
from model_host.snapshots.writer import Erased

MIN_TOKENS = 64  # reading fewer again costs less than a file
WORTH_LOADING = 32  # tokens that a snapshot must save beyond what the cache has


class SequenceStates(Protocol):
    """The model's part: the states of its KV sequences as bytes."""

    def save(self, sequence: int, end: int) -> bytearray | None:
        """The state of the first ``end`` positions; None when it can no longer be continued from there."""
        ...

    def load(self, sequence: int, state: bytes) -> bool:
        """Fill an empty sequence; False when llama.cpp does not take it."""
        ...


class SnapshotManager:
    """Saves and restores the slots of one table. Belongs to the loop's thread."""

    def __init__(
        self,
        slots: SlotTable,
        folder: SnapshotFolder,
        states: SequenceStates,
        boundary: Callable[[Sequence[int], int], int],
        *,
        quiet_seconds: float,
    ) -> None:
        self.restored = 0  # sequences brought back
        self.quiet_seconds = quiet_seconds
        self._slots = slots
        self._folder = folder
        self._states = states
        self._boundary = boundary
        slots.on_evict = self._save

    @property
    def saved(self) -> int:
        """Files written."""
        return self._folder.writer.saved

    def restore(self, sequence: request.SequenceState) -> None:
        """Bring back the longest snapshot of a prompt's beginning, when it has much more than the cache."""
        tokens, shared, owner = sequence.tokens, sequence.shared, sequence.owner
        while True:
            snapshot, length = self._folder.find(tokens, shared, owner)
            if snapshot is None or length - self._slots.find(tokens, shared, owner)[1] < WORTH_LOADING:
                return
            state = self._folder.load(snapshot)
            if state is not None:
                break  # else the index has forgotten it: the next best
        load = partial(self._load, state)
        self.restored += self._slots.adopt(snapshot.tokens, snapshot.shared, snapshot.owner, load)

    def pending(self) -> bool:
        """Whether something is worth saving."""
        return any(slot.unsaved for slot in self._slots.cached())

    def save_next(self) -> None:
        """Save one slot, the most recently used first."""
        slot = next((slot for slot in self._slots.cached() if slot.unsaved), None)
        if slot is not None:
            self._save(slot)

    def finish(self, seconds: float) -> None:
        """Save what is left, for so long at most."""
        deadline = time.monotonic() + seconds
        while self.pending() and self._folder.writer.flush(deadline - time.monotonic()):
            self.save_next()
        self._folder.writer.flush(max(0.0, deadline - time.monotonic()))

    def forget(self, owner: str, done: Erased) -> None:
        """Drop what is saved of an owner, without waiting. ``done`` is told of the end, in another thread."""
        self._folder.forget(owner, done)

    def _load(self, state: bytes, slot: int) -> bool:
        return self._states.load(slot, state)

    def _save(self, slot: Slot) -> None:
        slot.unsaved = False
        end = self._boundary(slot.tokens, slot.prompt)
        self._put(slot, slot.owner, min(slot.shared, end), end)
        shared = slot.tokens[: slot.shared]
        if slot.shared < end and self._slots.sharing(shared) > 1:
            self._put(slot, "", slot.shared, slot.shared)

    def _put(self, slot: Slot, owner: str, shared: int, end: int) -> None:
        tokens = slot.tokens[:end]
        if end < MIN_TOKENS or self._folder.has(owner, tokens):
            return
        state = self._states.save(slot.id, end)
        if state is not None and not self._folder.save(owner, shared, tokens, state):
            slot.unsaved = True  # the writer is busy: later
