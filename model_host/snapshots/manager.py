"""Decides which KV sequences are saved to disk, when, and which one is restored for a prompt.

A finished turn is saved at the positions where later prompts are expected to diverge from it: its end (the next turn),
before its last user message (an edited message), the end of its prompt (another reply), and the ends of its system
prompt and of its shared text (other conversations). Slots are saved when the host has been idle for a moment, before
eviction, and at shutdown, so a host that is unloaded, killed or replaced costs its conversations little.

A sequence is saved up to its ``boundary``, the length of the prefix that stays the same in the next prompt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Protocol

from model_host.batching import request
from model_host.batching.slots import Slot, SlotTable
from model_host.snapshots.folder import SnapshotFolder
from model_host.snapshots.snapshot_file import Snapshot, State
from model_host.snapshots.writer import Erased, SnapshotWriter

MIN_TOKENS = 64  # prefilling fewer tokens again costs less than a file
WORTH_LOADING = 32  # tokens that a snapshot must save beyond what the cache has
SLACK = 32  # last tokens of a shared beginning that may differ, such as those between a page and the question
NEAR = 8  # a file is not worth the prefill of 1/8 of a prompt


class SequenceStates(Protocol):
    """The model's KV sequences as bytes."""

    def save(
        self, sequence: int, end: int, stops: Sequence[int], earlier: State | None
    ) -> tuple[State, list[tuple[int, int]]] | None:
        """Return the state of the first ``end`` positions, and the ranges of lengths at which it can be continued.

        The ranges include ``end``, and those of ``stops`` whose sliding window is in the cache or in an ``earlier``
        state of the sequence, in the order given, until the state becomes too large. Returns None when the sequence
        cannot be continued at ``end``.
        """

    def reusable(self, sequence: int, length: int) -> bool:
        """See :class:`model_host.batching.slots.Memory`."""

    def load(self, sequence: int, state: State, length: int) -> bool:
        """Fill an empty sequence with the first ``length`` positions; return False when llama.cpp rejects the state."""


class SnapshotManager:
    """Saves and restores the slots of one table, in a folder for each adapter. Belongs to the loop's thread."""

    def __init__(
        self,
        slots: SlotTable,
        writer: SnapshotWriter,
        folders: Mapping[str, SnapshotFolder],
        states: SequenceStates,
        boundary: Callable[[Sequence[int], int], int],
        *,
        quiet_seconds: float,
    ) -> None:
        self.restored = 0  # sequences
        self.quiet_seconds = quiet_seconds
        self._slots = slots
        self._writer = writer
        self._folders = folders
        self._states = states
        self._boundary = boundary
        slots.on_evict = self._save

    @property
    def saved(self) -> int:
        """Files written."""
        return self._writer.saved

    def restore(self, sequence: request.SequenceState) -> None:
        """Restore the snapshot with the longest prefix of a prompt if it saves enough tokens over the cache."""
        tokens, shared, owner, adapter = sequence.tokens, sequence.shared, sequence.owner, sequence.adapter
        folder = self._folders[adapter]
        while True:
            snapshot, length = folder.find(tokens, shared, owner)
            cached = self._slots.find(tokens, shared, owner, adapter)[1]
            if snapshot is None or length - cached < WORTH_LOADING:
                return
            state = folder.load(snapshot)
            if state is not None:
                break  # otherwise the index has dropped it: try the next best
        load = partial(self._states.load, state=state, length=length)
        shared = min(snapshot.shared, length)
        self.restored += self._slots.adopt(snapshot.tokens[:length], shared, snapshot.owner, load, adapter)

    def pending(self) -> bool:
        """Whether a slot is unsaved."""
        return any(slot.unsaved for slot in self._slots.cached())

    def save_next(self) -> None:
        """Save one slot, the most recently used first."""
        slot = next((slot for slot in self._slots.cached() if slot.unsaved), None)
        if slot is not None:
            self._save(slot)

    def finish(self, seconds: float) -> None:
        """Save all unsaved slots, within ``seconds``."""
        deadline = time.monotonic() + seconds
        while self.pending() and self._writer.flush(deadline - time.monotonic()):
            self.save_next()
        self._writer.flush(max(0.0, deadline - time.monotonic()))

    def forget(self, owner: str, done: Erased) -> None:
        """Delete an owner's snapshots without waiting. ``done`` is called at the end, in another thread."""
        for folder in self._folders.values():
            folder.forget(owner)
        self._writer.erase(owner, done)

    def _save(self, slot: Slot) -> None:
        slot.unsaved = False
        folder = self._folders[slot.adapter]
        end = self._boundary(slot.tokens, slot.prompt)
        shared = min(slot.shared, end)
        near = max(MIN_TOKENS, end // NEAR)
        beginnings = {slot.marks.system, shared, min(slot.marks.branch, shared)}
        owner, wanted = slot.owner, {*beginnings, slot.marks.turn, slot.prompt - 1}
        if end - shared <= near:  # little is private: save only the shared text, for every owner
            owner, end, wanted = "", shared, beginnings
        stops: list[int] = []  # one covers those slightly above it
        for stop in sorted(wanted):
            if MIN_TOKENS <= stop < end and (not stops or stop - stops[-1] > near):
                stops.append(stop)
        outgrown = folder.outgrown(slot.owner, shared, slot.tokens[:end], stops)
        inside = [stop for stop in stops if stop not in beginnings or not self._covered(slot, stop, outgrown)]
        earlier = None
        if outgrown and not all(self._states.reusable(slot.id, stop) for stop in inside):
            earlier = folder.load(max(outgrown, key=lambda snapshot: len(snapshot.tokens)))
        if owner or not self._covered(slot, end):
            slack = [] if owner else [end - SLACK]
            gaps = sorted((below - stop, stop) for below, stop in pairwise([0, *inside]))  # the largest first
            self._put(slot, owner, shared, end, earlier, [*slack, *(stop for _, stop in gaps)], outgrown)
        for stop in reversed(inside):
            # A stop that did not fit gets a file of its own once several conversations begin with it.
            if stop in beginnings and not self._covered(slot, stop, outgrown):
                whose = "" if stop <= shared else owner
                if folder.begins_another(slot.tokens[:stop], whose, besides=slot.tokens[:end]):
                    self._put(slot, whose, min(shared, stop), stop, earlier, [stop - SLACK])

    def _covered(self, slot: Slot, length: int, besides: Sequence[Snapshot] = ()) -> bool:
        folder = self._folders[slot.adapter]
        return folder.covers(slot.tokens[:length], slot.shared, slot.owner, besides=besides)

    def _put(
        self,
        slot: Slot,
        owner: str,
        shared: int,
        end: int,
        earlier: State | None,
        stops: Sequence[int] = (),
        outgrown: Sequence[Snapshot] = (),
    ) -> None:
        tokens, folder = slot.tokens[:end], self._folders[slot.adapter]
        if end < MIN_TOKENS or folder.has(owner, tokens):
            return
        saved = self._states.save(slot.id, end, stops, earlier)
        if saved is not None and not folder.save(owner, shared, tokens, *saved, outgrown):
            slot.unsaved = True  # the writer is busy: later
