"""Track the tokens of each KV sequence, the owners that may reuse them, and the cells that they take.

A slot is one llama.cpp sequence id. It is active while a request runs in it, and cached afterwards until its
cells are needed. Cells are counted exactly: a cell shared by several slots (``llama_memory_seq_cp`` on a
unified cache shares, it copies nothing) counts once. Plain Python over values; :class:`Memory` is the only
way to the model.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Memory(Protocol):
    """The KV cache operations that slots need; positions count from 0, ends are exclusive."""

    def copy(self, source: int, target: int, end: int) -> None:
        """Share the cells of positions [0, end) of ``source`` with the empty sequence ``target``."""
        ...

    def trim(self, sequence: int, start: int) -> None:
        """Forget positions [start, ∞) of a sequence."""
        ...

    def length(self, sequence: int) -> int:
        """Positions that a sequence has."""
        ...

    def reusable(self, sequence: int, length: int) -> bool:
        """Whether a prompt may continue after the first ``length`` positions (sliding windows may be gone)."""
        ...


@dataclass(frozen=True, slots=True)
class Marks:
    """Lengths of a prompt at which other prompts are likely to leave it; 0: none."""

    system: int = 0  # end of the system prompt
    turn: int = 0  # start of the last user turn
    branch: int = 0  # where the prompt left the text of a cached one


@dataclass(slots=True, eq=False)
class Slot:
    """One KV sequence and what is known about it."""

    id: int
    owner: str = ""
    adapter: str = ""  # that computed its cells
    tokens: list[int] = field(default_factory=list)
    cells: list[int] = field(default_factory=list)  # identity of the cell behind each token
    shared: int = 0  # leading tokens that other owners may reuse
    active: bool = False
    used_at: int = 0  # logical clock, for least-recently-used eviction
    prompt: int = 0  # tokens of the prompt of the last request; what follows was generated
    marks: Marks = Marks()  # of that prompt
    kept: bool = False  # a conversation that may continue
    unsaved: bool = False  # holds something worth a snapshot that none has


def common_prefix(a: Sequence[int], b: Sequence[int], limit: int) -> int:
    """Length of the common prefix of two token lists, at most ``limit``."""
    limit = min(limit, len(a), len(b))
    if a[:limit] == b[:limit]:
        return limit
    same, different = 0, limit  # bisection: comparing slices is far faster than comparing tokens
    while different - same > 1:
        middle = (same + different) // 2
        if a[same:middle] == b[same:middle]:
            same = middle
        else:
            different = middle
    return same


LONG_PROMPT = 256  # tokens to prefill: for longer prompts, restoring cells costs less than leaving them
_BESIDE_LONG = 0.2  # of the usual idle cells


class SlotTable:
    """All slots of a context with ``cells`` KV cells, of which about ``idle`` may be kept by idle slots.

    llama.cpp's attention walks over every used cell, also those of others, to find its own. So a long prompt begins
    with fewer of them: a saved conversation comes back in some 20 µs a token, and texts that others share stay.
    """

    def __init__(
        self, slots: int, cells: int, memory: Memory, *, idle: int | None = None, long: int = LONG_PROMPT
    ) -> None:
        self.size = cells
        self._idle = cells if idle is None else idle
        self._long = long
        self._memory = memory
        self._slots = [Slot(i) for i in range(slots)]
        self.on_evict: Callable[[Slot], None] | None = None  # called before a cached slot gives up its cells
        self._references: dict[int, int] = {}
        self._cell_ids = itertools.count()
        self._clock = itertools.count(1)

    @property
    def used(self) -> int:
        """Cells in use, each counted once."""
        return len(self._references)

    @property
    def free(self) -> int:
        return self.size - self.used

    def find(
        self, tokens: Sequence[int], shared: int, owner: str, adapter: str = ""
    ) -> tuple[Slot | None, int]:
        """The slot with the longest reusable prefix of ``tokens``, and that length.

        The fence: another owner's slot is reused only as far as the text is marked shared on both sides, and that of
        another adapter never. The last token is never reused, because decoding it yields the first logits.
        """
        best: Slot | None = None
        length = 0
        for slot in self._slots:
            limit = len(tokens) - 1
            if slot.owner != owner:
                limit = min(limit, shared, slot.shared)
            if limit <= length or len(slot.tokens) <= length or slot.adapter != adapter:
                continue
            common = common_prefix(slot.tokens, tokens, limit)
            if common > length and self._memory.reusable(slot.id, common):
                best, length = slot, common
        return best, length

    def fits(
        self,
        tokens: Sequence[int],
        shared: int,
        owner: str,
        cells: int,
        adapter: str = "",
        *,
        besides: Slot | None = None,
    ) -> bool:
        """Whether :meth:`acquire` would find a place, were the slot ``besides`` not active."""
        source, length = self.find(tokens, shared, owner, adapter)
        active = [slot.cells for slot in self._slots if slot.active and slot is not besides]
        held = set(source.cells[:length] if source is not None else ()).union(*active)
        return len(active) < len(self._slots) and len(held) + cells - length <= self.size

    def acquire(
        self, tokens: Sequence[int], shared: int, owner: str, cells: int, adapter: str = ""
    ) -> tuple[Slot, int] | None:
        """A slot for a prompt with its longest cached prefix already in it, and that prefix's length.

        ``cells``: how many it needs in all. Those that the prefix does not have are left free, evicting cached slots
        where needed. Returns None, with nothing changed, when the active slots leave no slot or not enough cells.
        """
        if not self.fits(tokens, shared, owner, cells, adapter):
            return None
        source, length = self.find(tokens, shared, owner, adapter)
        if source is not None and not source.active and length == len(source.tokens):
            slot: Slot | None = source
        else:
            slot = self._vacant(keep=source)
            if slot is None and source is not None and not source.active:
                slot = source
                self._truncate(slot, length)
            elif slot is not None and source is not None:
                self._share(source, slot, length)
        assert slot is not None
        slot.active, slot.owner, slot.adapter = True, owner, adapter
        slot.shared = min(shared, length)
        slot.used_at = next(self._clock)
        self.make_room(cells - length)
        if len(tokens) - length >= self._long:
            self._thin_out(round(_BESIDE_LONG * self._idle), beside_long=True)
        return slot, length

    def append(self, slot: Slot, tokens: Sequence[int], shared: int) -> None:
        """Record that ``tokens`` were decoded into the slot; ``shared`` is the sequence's shared length."""
        for token in tokens:
            cell = next(self._cell_ids)
            self._references[cell] = 1
            slot.cells.append(cell)
            slot.tokens.append(token)
        slot.shared = min(shared, len(slot.tokens))

    def cut(self, slot: Slot) -> None:
        """Remove rejected draft tokens from the slot: those that were decoded but not recorded."""
        self._memory.trim(slot.id, len(slot.tokens))

    def adopt(
        self,
        tokens: Sequence[int],
        shared: int,
        owner: str,
        load: Callable[[int], bool],
        adapter: str = "",
    ) -> bool:
        """Bring a saved sequence back as a cached slot; ``load`` fills the empty sequence of the given id.

        False, with nothing but evictions changed, when there is no room for it or it cannot be loaded.
        """
        slot = self._vacant(keep=None) if self.make_room(len(tokens)) else None
        if slot is None:
            return False
        if not load(slot.id):
            self._memory.trim(slot.id, 0)
            return False
        self.append(slot, tokens, shared)
        slot.owner, slot.adapter, slot.kept, slot.used_at = owner, adapter, True, next(self._clock)
        return True

    def release(
        self,
        slot: Slot,
        *,
        prompt: int = 0,
        marks: Marks = Marks(),
        keep: bool = False,
        forget: bool = False,
    ) -> None:
        """The request is over: the slot's tokens stay as cache until their cells are needed.

        ``prompt``: how many of them were its prompt. ``keep``: they are worth a snapshot. ``forget``: none stays.
        """
        slot.active = False
        slot.prompt, slot.marks, slot.kept, slot.unsaved = prompt, marks, keep, keep
        slot.used_at = next(self._clock)
        if forget or not slot.tokens:
            self._clear(slot)
        self._thin_out(self._idle)

    def make_room(self, cells: int) -> bool:
        """Evict cached slots, least recently used first, until ``cells`` are free."""
        while self.free < cells:
            victim = self._oldest_cached()
            if victim is None:
                return False
            self._evict(victim)
        return True

    def cached(self) -> list[Slot]:
        """The slots that no request runs in, the most recently used first."""
        idle = [slot for slot in self._slots if not slot.active and slot.tokens]
        return sorted(idle, key=lambda slot: -slot.used_at)

    def forget(self, owner: str) -> None:
        for slot in self.cached():
            if slot.owner == owner:
                self._clear(slot)

    def drop_cached(self) -> bool:
        """Forget every slot that no request runs in; False when there was none."""
        cached = self.cached()
        for slot in cached:
            self._clear(slot)
        return bool(cached)

    def check(self) -> None:
        """Raise AssertionError when the bookkeeping contradicts itself."""
        for slot in self._slots:
            assert len(slot.cells) == len(slot.tokens), f"slot {slot.id}: cells and tokens differ"
            assert slot.shared <= len(slot.tokens), f"slot {slot.id}: shared beyond its end"
            assert self._memory.length(slot.id) == len(slot.tokens), f"slot {slot.id}: the model disagrees"
        counted = Counter(cell for slot in self._slots for cell in slot.cells)
        assert counted == self._references, "cell references do not add up"
        assert self.used <= self.size, "more cells used than there are"

    def repair(self) -> str | None:
        """:meth:`check` while no request runs; what is wrong costs the cache, and is returned."""
        try:
            self.check()
        except AssertionError as problem:
            for slot in self._slots:
                self._memory.trim(slot.id, 0)
            self._slots = [Slot(slot.id) for slot in self._slots]
            self._references.clear()
            return str(problem)
        return None

    def _thin_out(self, most: int, *, beside_long: bool = False) -> None:
        """Evict idle slots until at most ``most`` cells are idle, slots that are no conversations first.

        A slot that cannot be saved at the moment stays. So do the slot used last, whatever its length, and the
        conversation used last, so that a summary made beside it does not cost its next prompt the cached prefix. With
        ``beside_long``, a long prompt, both are evicted too if they can be restored, but text that others may share
        stays.
        """
        active = {cell for slot in self._slots if slot.active for cell in slot.cells}
        resting = self.cached()
        staying = {slot.id for slot in (*resting[:1], *[slot for slot in resting if slot.kept][:1])}
        if beside_long and self.on_evict is not None:
            staying = set()
        for slot in sorted(resting, key=lambda slot: (slot.kept, slot.used_at)):
            if slot.id in staying:
                continue
            if self.used - len(active) <= most:
                return
            self._evict(slot, lose=False, end=slot.shared if beside_long else 0)

    def _vacant(self, keep: Slot | None) -> Slot | None:
        """An empty slot, evicting the oldest cached one but ``keep`` if there is none."""
        empty = next((s for s in self._slots if not s.active and not s.tokens), None)
        if empty is not None:
            return empty
        victim = self._oldest_cached(keep)
        if victim is not None:
            self._evict(victim)
        return victim

    def _evict(self, slot: Slot, *, lose: bool = True, end: int = 0) -> None:
        """Give up the cells from ``end`` on, once what is worth it is saved; ``lose`` them even if it cannot be."""
        if self.on_evict is not None and slot.unsaved:
            self.on_evict(slot)
            if slot.unsaved and not lose:
                return
        if not end or not self._memory.reusable(slot.id, end):  # restored: with its last windows alone
            self._clear(slot)
            return
        self._truncate(slot, end)
        slot.prompt, slot.kept, slot.unsaved = min(slot.prompt, end), False, False

    def _oldest_cached(self, keep: Slot | None = None) -> Slot | None:
        cached = [s for s in self._slots if not s.active and s.tokens and s is not keep]
        return min(cached, key=lambda s: s.used_at, default=None)

    def _share(self, source: Slot, target: Slot, length: int) -> None:
        self._memory.copy(source.id, target.id, length)
        target.tokens = source.tokens[:length]
        target.cells = source.cells[:length]
        for cell in target.cells:
            self._references[cell] += 1

    def _truncate(self, slot: Slot, length: int) -> None:
        self._memory.trim(slot.id, length)
        for cell in slot.cells[length:]:
            self._references[cell] -= 1
            if not self._references[cell]:
                del self._references[cell]
        del slot.cells[length:]
        del slot.tokens[length:]
        slot.shared = min(slot.shared, length)

    def _clear(self, slot: Slot) -> None:
        if slot.tokens:
            self._truncate(slot, 0)
        slot.owner = slot.adapter = ""
        slot.shared = slot.prompt = 0
        slot.kept = slot.unsaved = False
