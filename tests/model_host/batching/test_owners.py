"""No output depends on another owner's private text, or another adapter's cells, whatever runs beside it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from model_host.batching.batches import batches
from model_host.batching.request import SequenceState
from model_host.batching.scheduler import Scheduler
from model_host.batching.slots import SlotTable
from model_host.replies.reply import Reply
from tests.model_host.fakes import CountingSampler


class TracingMemory:
    """KV sequences in which each cell records the text, the owner and the adapter it was computed from."""

    def __init__(self) -> None:
        self.cells: dict[int, list[tuple[tuple[int, ...], str, str]]] = {}
        self.declared: set[tuple[int, ...]] = set()  # prefixes that some request marked as shared

    def copy(self, source: int, target: int, end: int) -> None:
        assert not self.cells.get(target)
        self.cells[target] = self.cells[source][:end]

    def trim(self, sequence: int, start: int) -> None:
        self.cells[sequence] = self.cells.get(sequence, [])[:start]

    def length(self, sequence: int) -> int:
        return len(self.cells.get(sequence, []))

    def reusable(self, sequence: int, length: int) -> bool:
        return length <= self.length(sequence)

    def decode(self, sequence: int, tokens: list[int], owner: str, adapter: str) -> None:
        """Decode as llama.cpp does: each new cell depends on all cells before it."""
        cells = self.cells.setdefault(sequence, [])
        for token in tokens:
            text = (*(cells[-1][0] if cells else ()), token)
            cells.append((text, owner, adapter))


@pytest.mark.parametrize("seed", range(12))
def test_a_sequence_is_computed_from_its_own_and_shared_text_alone(seed: int) -> None:
    draw = random.Random(seed)
    memory = TracingMemory()
    table = SlotTable(8, 160, memory, idle=draw.choice([None, 40]))
    scheduler = Scheduler(table, parallel=4, max_waiting=1000, sequence_limit=160, drafts=draw.choice([0, 6]))
    system = [list(range(100, 100 + draw.randrange(5, 30))) for _ in range(2)]
    reused = 0
    for step in range(600):
        if step < 500 and draw.random() < 0.2:
            new = request(draw, f"r{step}", system, float(step))
            memory.declared.update(tuple(new.tokens[: end + 1]) for end in range(new.shared))
            scheduler.add(new)
        scheduler.admit(float(step))
        for batch in batches(scheduler.plan(draw.randrange(4, 40), float(step))):
            assert len({feed.sequence.adapter for feed in batch}) == 1, (
                "llama.cpp computes a batch with one adapter"
            )
            reused += sum(run(memory, table, scheduler, feed, draw) for feed in batch)
        table.check()
    assert reused > 300, "prefixes were shared, so there was something to get wrong"


def request(draw: random.Random, name: str, system: list[list[int]], now: float) -> SequenceState:
    """A prompt: a shared prefix, often the owner's mark, and words common to all."""
    owner = draw.randrange(5)
    shared = draw.choice(system)
    mark = [1000 + owner] if draw.random() < 0.7 else []
    tokens = shared + mark + [draw.randrange(3) for _ in range(draw.randrange(1, 12))]
    lane: Any = draw.choice(["interactive", "retrieval", "background"])
    limit = draw.choice([0, len(shared)])
    adapter = draw.choice(["", "", "lora"])
    sampler, most = CountingSampler(1), draw.randrange(1, 9)
    return SequenceState(name, lane, f"o{owner}", tokens, limit, most, sampler, Reply(), now, adapter)


def run(memory: TracingMemory, table: SlotTable, scheduler: Scheduler, feed: Any, draw: random.Random) -> int:
    """Decode a feed, check every cell that the sequence attends to, and sample. Returns the cached tokens."""
    sequence, slot = feed.sequence, feed.sequence.slot
    first = sequence.cached if sequence.done == sequence.cached else 0
    fed = sequence.tokens[sequence.done : sequence.done + feed.count]
    memory.decode(slot.id, [*fed, *feed.draft], sequence.owner, sequence.adapter)
    table.append(slot, fed, sequence.shared)
    sequence.done += feed.count
    if feed.draft:
        table.cut(slot)
    for place, (text, owner, adapter) in enumerate(memory.cells[slot.id]):
        assert list(text) == sequence.tokens[: place + 1], "a cell was computed from other text"
        assert adapter == sequence.adapter, "a cell that another adapter computed"
        assert owner == sequence.owner or text in memory.declared, "a cell of another owner's private text"
    if feed.last:
        sequence.tokens.append(draw.randrange(3))
        if sequence.generated >= sequence.max_tokens or len(sequence.tokens) >= 160:
            scheduler.remove(sequence)
    return int(first)
