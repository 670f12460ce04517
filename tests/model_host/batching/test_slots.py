"""Slots: which tokens the cache holds, for whom, and that the books agree with the model."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from model_host.batching.slots import SlotTable
from tests.model_host.fakes import FakeMemory

OPERATION = st.tuples(
    st.integers(0, 2),  # owner
    st.lists(st.integers(0, 2), min_size=1, max_size=12),  # prompt
    st.integers(0, 12),  # shared
    st.integers(0, 3),  # which active slot to end
)


@settings(max_examples=300)
@given(st.lists(OPERATION, max_size=40), st.integers(0, 30), st.integers(1, 13), st.booleans())
def test_slots_add_up_and_keep_the_fence(
    operations: list[tuple[int, list[int], int, int]], idle: int, long: int, saving: bool
) -> None:
    memory = FakeMemory()
    table = SlotTable(4, 30, memory, idle=idle, long=long)
    if saving:
        table.on_evict = lambda slot: None
    active: list[Any] = []
    for owner_number, prompt, shared, which in operations:
        owner = f"owner{owner_number}"
        shared = min(shared, len(prompt))
        before = {slot.id: (slot.owner, slot.shared, list(slot.tokens)) for slot in table._slots}
        placed = table.acquire(prompt, shared, owner, len(prompt))
        if placed is not None:
            slot, reused = placed
            assert reused <= len(prompt) - 1
            assert slot.tokens == prompt[:reused]
            if reused > shared:  # private text was reused: some slot of the same owner must have held it
                assert any(o == owner and t[:reused] == prompt[:reused] for o, _, t in before.values())
            table.append(slot, prompt[reused:], shared)
            memory.lengths[slot.id] = len(prompt)
            active.append(slot)
        table.check()
        assert table.used <= table.size
        if active and which < len(active):
            table.release(active.pop(which))
            table.check()
            running = {cell for slot in active for cell in slot.cells}
            assert table.used - len(running) <= idle or len(table.cached()) <= 1
    for slot in active:
        table.release(slot)
    table.drop_cached()
    assert table.used == 0


def cached(memory: FakeMemory) -> tuple[SlotTable, int]:
    """A table with the idle slot of four tokens of the owner "a", half of them shared, and its id."""
    table = SlotTable(4, 100, memory)
    placed = table.acquire([1, 2, 3, 4], 2, "a", 4)
    assert placed is not None
    table.append(placed[0], [1, 2, 3, 4], 2)
    memory.lengths[placed[0].id] = 4
    table.release(placed[0])
    return table, placed[0].id


def test_another_owners_private_prefix_is_not_reused() -> None:
    table, _ = cached(FakeMemory())
    assert table.find([1, 2, 3, 4, 5], 2, "b")[1] == 2
    assert table.find([1, 2, 3, 4, 5], 5, "b")[1] == 2
    assert table.find([1, 2, 3, 4, 5], 0, "b")[1] == 0
    assert table.find([1, 2, 3, 4, 5], 0, "a")[1] == 4


def test_few_cells_stay_idle_nobodys_conversations_go_first_and_nothing_unsaved_goes() -> None:
    memory = FakeMemory()
    table = SlotTable(8, 100, memory, idle=12)
    saved: list[int] = []
    writer_is_busy = False

    def save(slot: Any) -> None:
        if not writer_is_busy:
            slot.unsaved = False
            saved.append(slot.tokens[0])

    table.on_evict = save

    def turn(first: int, *, keep: bool) -> None:
        placed = table.acquire([first] * 5, 0, "a", 5)
        assert placed is not None
        table.append(placed[0], [first] * 5, 0)
        memory.lengths[placed[0].id] = 5
        table.release(placed[0], prompt=5, keep=keep)

    def kept() -> list[int]:
        return sorted(slot.tokens[0] for slot in table.cached())

    turn(1, keep=True)
    turn(2, keep=False)
    turn(3, keep=True)
    assert (kept(), saved) == ([1, 3], [])
    turn(4, keep=True)
    assert (kept(), saved) == ([3, 4], [1])
    writer_is_busy = True
    turn(5, keep=True)
    assert (kept(), saved) == ([3, 4, 5], [1])
    writer_is_busy = False
    turn(6, keep=True)
    assert (kept(), saved) == ([5, 6], [1, 3, 4])


def test_beside_a_long_prompt_only_what_is_shared_stays() -> None:
    memory = FakeMemory()
    table = SlotTable(8, 200, memory, idle=50, long=20)
    saved: list[list[int]] = []

    def save(slot: Any) -> None:
        slot.unsaved = False
        saved.append(list(slot.tokens))

    def start(tokens: list[int], shared: int) -> Any:
        placed = table.acquire(tokens, shared, "a", len(tokens))
        assert placed is not None
        slot, length = placed
        table.append(slot, tokens[length:], shared)
        memory.lengths[slot.id] = len(tokens)
        return slot

    talk, other, long = [1, 1, *range(10, 30)], [2] * 15, [3] * 20
    table.release(start(talk, 2), prompt=22, keep=True)
    table.release(start(other, 0), prompt=15, keep=True)
    resting = start([4] * 19, 0)  # not long
    assert table.find([*talk, 5], 2, "a")[1] == 22
    table.release(resting, prompt=19, keep=False)

    kept = start(long, 0)  # nothing can be brought back yet: the last ones stay
    assert table.find([*other, 5], 0, "a")[1] == 15
    table.release(kept, prompt=20, keep=True)

    table.on_evict = save
    table.release(start(talk, 2), prompt=22, keep=True)
    running = start([6] * 20, 0)
    assert saved[-1] == talk
    assert table.find([*talk, 5], 2, "a")[1] == 2, "the shared beginning stays"
    assert table.find([1, 1, 7], 2, "b")[1] == 2, "also for others"
    assert table.find([*long, 5], 0, "a")[1] == 0
    table.check()
    assert table.used == 20 + 2
    table.release(running)


class LastWindows(FakeMemory):
    """Has the last three positions of a restored sequence alone, as with sliding windows."""

    def trim(self, sequence: int, start: int) -> None:
        gone = start <= self.length(sequence) - 3
        super().trim(sequence, 0 if gone else start)

    def reusable(self, sequence: int, length: int) -> bool:
        return self.length(sequence) - 3 < length <= self.length(sequence)


def test_a_restored_conversation_has_no_beginning_that_could_stay() -> None:
    """Else the check of the cache finds that the model disagrees, and drops everything."""
    memory = LastWindows()
    table = SlotTable(8, 200, memory, idle=50, long=20)
    table.on_evict = lambda slot: setattr(slot, "unsaved", False)

    def load(slot: int) -> bool:
        memory.lengths[slot] = 22
        return True

    assert table.adopt([1, 1, *range(10, 30)], 2, "a", load)
    placed = table.acquire([6] * 20, 0, "a", 20)
    assert placed is not None
    table.append(placed[0], [6] * 20, 0)
    memory.lengths[placed[0].id] = 20
    table.check()
    assert table.used == 20


def test_books_that_contradict_the_model_cost_the_cache() -> None:
    memory = FakeMemory()
    table, slot = cached(memory)
    assert table.repair() is None
    assert table.find([1, 2, 3, 4, 5], 2, "a")[1] == 4
    memory.lengths[slot] = 3
    assert "disagrees" in str(table.repair())
    assert (table.used, table.find([1, 2, 3, 4, 5], 2, "a")[1], memory.length(slot)) == (0, 0, 0)
    assert table.repair() is None


def test_work_in_the_background_does_not_push_the_conversation_out() -> None:
    memory = FakeMemory()
    table = SlotTable(8, 100, memory, idle=4)

    def turn(first: int, length: int, *, keep: bool) -> None:
        placed = table.acquire([first] * length, 0, "a", length)
        assert placed is not None
        table.append(placed[0], [first] * length, 0)
        memory.lengths[placed[0].id] = length
        table.release(placed[0], prompt=length, keep=keep)

    turn(1, 20, keep=True)
    for part in range(2, 9):  # a long text is read in parts
        turn(part, 15, keep=False)
        assert table.find([1] * 21, 0, "a")[1] == 20
    assert len(table.cached()) == 2, "of the parts only the last one rests"
    turn(9, 20, keep=True)
    assert [slot.tokens[0] for slot in table.cached()] == [9]
