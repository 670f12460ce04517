"""What is saved of the KV cache, and when; and what is restored for a prompt.

A finished turn is saved where later prompts are expected to leave it: at its end (the next turn), before its last
user message (an edited message), at the end of its prompt (another reply), and where its system prompt and its shared
text end (other conversations). Saving happens when the host has been idle for a moment, before cells are given up,
and at the end, so a host that is unloaded, killed or replaced costs its conversations little.

A sequence is saved up to its ``boundary``, the length of the prefix that stays the same in the next prompt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Protocol

from model_host.batching import request
from model_host.batching.slots import Slot, SlotTable
from model_host.snapshots.folder import SnapshotFolder
from model_host.snapshots.snapshot_file import Snapshot, State
from model_host.snapshots.writer import Erased

MIN_TOKENS = 64  # prefilling fewer again costs less than a file
WORTH_LOADING = 32  # tokens that a snapshot must save beyond what the cache has
SLACK = 32  # tokens before the end of a beginning, such as what leads from a page to the question, that may differ
NEAR = 8  # prefilling 1/8 of a prompt again is worth no bytes


class SequenceStates(Protocol):
    """The model's part: the states of its KV sequences as bytes."""

    def save(
        self, sequence: int, end: int, stops: Sequence[int], earlier: bytes | None
    ) -> tuple[State, list[tuple[int, int]]] | None:
        """The state of the first ``end`` positions, and the stretches of lengths at which it can be continued.

        They include ``end``, and each of ``stops`` as far as the cache or an ``earlier`` state of the sequence has
        its window and the state stays small enough, the first ones before others. None when neither can be continued
        at ``end``.
        """
        ...

    def reusable(self, sequence: int, length: int) -> bool:
        """See :class:`model_host.batching.slots.Memory`."""
        ...

    def load(self, sequence: int, state: bytes, length: int) -> bool:
        """Fill an empty sequence with the first ``length`` positions; False when llama.cpp refuses the state."""
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
        load = partial(self._load, state, length)
        shared = min(snapshot.shared, length)
        self.restored += self._slots.adopt(snapshot.tokens[:length], shared, snapshot.owner, load)

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

    def _load(self, state: bytes, length: int, slot: int) -> bool:
        return self._states.load(slot, state, length)

    def _save(self, slot: Slot) -> None:
        slot.unsaved = False
        end = self._boundary(slot.tokens, slot.prompt)
        shared = min(slot.shared, end)
        near = max(MIN_TOKENS, end // NEAR)
        beginnings = {slot.marks.system, shared, min(slot.marks.branch, shared)}
        owner, wanted = slot.owner, {*beginnings, slot.marks.turn, slot.prompt - 1}
        if end - shared <= near:  # little is private: the shared text alone is saved, for every owner
            owner, end, wanted = "", shared, beginnings
        stops: list[int] = []  # one of them stands for those little above it
        for stop in sorted(wanted):
            if MIN_TOKENS <= stop < end and (not stops or stop - stops[-1] > near):
                stops.append(stop)
        outgrown = self._folder.outgrown(slot.owner, shared, slot.tokens[:end], stops)
        inside = [stop for stop in stops if stop not in beginnings or not self._covered(slot, stop, outgrown)]
        earlier = None
        if outgrown and not all(self._states.reusable(slot.id, stop) for stop in inside):
            earlier = self._folder.load(max(outgrown, key=lambda snapshot: len(snapshot.tokens)))
        if owner or not self._covered(slot, end):
            slack = [] if owner else [end - SLACK]
            gaps = sorted((below - stop, stop) for below, stop in pairwise([0, *inside]))  # the largest first
            self._put(slot, owner, shared, end, earlier, [*slack, *(stop for _, stop in gaps)], outgrown)
        for stop in reversed(inside):
            # What found no room, once several conversations have it: less than the same windows in each of them.
            if stop in beginnings and not self._covered(slot, stop, outgrown):
                whose = "" if stop <= shared else owner
                if self._folder.begins_another(slot.tokens[:stop], whose, besides=slot.tokens[:end]):
                    self._put(slot, whose, min(shared, stop), stop, earlier, [stop - SLACK])

    def _covered(self, slot: Slot, length: int, besides: Sequence[Snapshot] = ()) -> bool:
        return self._folder.covers(slot.tokens[:length], slot.shared, slot.owner, besides=besides)

    def _put(
        self,
        slot: Slot,
        owner: str,
        shared: int,
        end: int,
        earlier: bytes | None,
        stops: Sequence[int] = (),
        outgrown: Sequence[Snapshot] = (),
    ) -> None:
        tokens = slot.tokens[:end]
        if end < MIN_TOKENS or self._folder.has(owner, tokens):
            return
        saved = self._states.save(slot.id, end, stops, earlier)
        if saved is not None and not self._folder.save(owner, shared, tokens, *saved, outgrown):
            slot.unsaved = True  # the writer is busy: later
