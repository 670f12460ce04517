"""The scheduler without a model: requests in any order and combination, lanes, owners."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_host.batching.request import SequenceState, aged_lane
from model_host.batching.scheduler import Scheduler
from model_host.batching.slots import SlotTable
from tests.model_host.fakes import CountingSampler, FakeMemory, generation

Request = tuple[
    int, str, int, int, int, int
]  # arrival step, lane, owner, prompt and answer length, what it is about


def simulate(requests: list[Request], *, cells: int, parallel: int, budget: int) -> dict[str, list[int]]:
    """Run requests to their end; return their tokens by id."""
    memory = FakeMemory()
    table = SlotTable(2 * parallel, cells, memory)
    scheduler = Scheduler(table, parallel=parallel, max_waiting=1000, sequence_limit=cells)
    coming = sorted(enumerate(requests), key=lambda r: r[1][0])
    finished: dict[str, list[int]] = {}
    step = 0
    while coming or scheduler.waiting or scheduler.running:
        now = float(step)
        while coming and coming[0][1][0] <= step:
            number, (_, lane, owner, prompt, answer, about) = coming.pop(0)
            tokens = [(about * 7 + i) % 50 for i in range(prompt)]
            item = generation(str(number), lane, tokens, owner=f"o{owner}", arrived=now, answer=answer)
            item.shared = prompt if about == 0 else 0
            item.sampler = CountingSampler(number)
            scheduler.add(item)
        admit(scheduler, now)
        assert len(scheduler.running) <= parallel
        feeds = scheduler.plan(budget, now)
        assert sum(feed.count for feed in feeds) <= budget
        assert table.free >= sum(feed.count for feed in feeds)
        if not feeds and scheduler.running:
            sequence = scheduler.running[0]
            finished[sequence.id] = sequence.tokens
            scheduler.remove(sequence)
        for feed in feeds:
            sequence = feed.sequence
            assert sequence.slot is not None
            table.append(
                sequence.slot, sequence.tokens[sequence.done : sequence.done + feed.count], sequence.shared
            )
            sequence.done += feed.count
            memory.lengths[sequence.slot.id] = sequence.done
            if feed.last:
                sequence.tokens.append(sequence.sampler.sample(0))
                if sequence.generated >= sequence.max_tokens or len(sequence.tokens) >= cells:
                    finished[sequence.id] = sequence.tokens
                    scheduler.remove(sequence)
        table.check()
        step += 1
        assert step < 1200, "requests starve"
    return finished


def admit(scheduler: Scheduler, now: float) -> None:
    """Only a more urgent request preempts another, and no cache is evicted in vain."""
    before = list(scheduler.running)
    cached = {slot.id: list(slot.tokens) for slot in scheduler.slots.cached()}
    scheduler.admit(now)
    gained = lanes([one for one in scheduler.running if one not in before], now)
    lost = lanes([one for one in before if one not in scheduler.running], now)
    assert len(gained) >= len(lost)
    assert all(winner < loser for winner, loser in zip(gained, lost, strict=False))
    if scheduler.running == before:
        assert cached == {slot.id: list(slot.tokens) for slot in scheduler.slots.cached()}


def lanes(sequences: list[SequenceState], now: float) -> list[int]:
    """The most urgent first."""
    return sorted(aged_lane(one.lane, one.arrived, now) for one in sequences)


REQUEST = st.tuples(
    st.integers(0, 40),
    st.sampled_from(["interactive", "retrieval", "background"]),
    st.integers(0, 2),
    st.integers(1, 90),
    st.integers(1, 30),
    st.integers(0, 2),
)


@settings(max_examples=60)
@given(st.lists(REQUEST, min_size=1, max_size=14), st.integers(1, 4), st.integers(4, 32))
def test_every_request_ends_with_the_tokens_it_has_alone(
    requests: list[Request], parallel: int, budget: int
) -> None:
    """Small caches force preemption; what a sequence generates does not depend on the others."""
    budget = max(budget, parallel)
    together = simulate(requests, cells=96, parallel=parallel, budget=budget)
    assert set(together) == {str(i) for i in range(len(requests))}
    for number, request in enumerate(requests):
        prompt, answer = request[3], request[4]
        assert len(together[str(number)]) == min(prompt + answer, 96)
        sampler = CountingSampler(number)
        generated = together[str(number)][prompt:]
        assert generated == [sampler.sample(0) for _ in generated]


def test_lanes_and_owners() -> None:
    def request(name: str, lane: str, owner: str, arrived: float) -> SequenceState:
        return generation(name, lane, [*name.encode(), *range(5)], owner=owner, arrived=arrived)

    scheduler = Scheduler(SlotTable(8, 1000, FakeMemory()), parallel=2, max_waiting=9, sequence_limit=1000)
    for item in (
        request("b", "background", "x", 0.0),
        request("x1", "interactive", "x", 1.0),
        request("x2", "interactive", "x", 2.0),
        request("y1", "interactive", "y", 3.0),
    ):
        scheduler.add(item)
    assert [s.id for s in scheduler.admit(4.0)] == ["x1", "x2"]
    scheduler.remove(scheduler.running[0])
    assert [s.id for s in scheduler.admit(4.0)] == ["y1"], "the owner with less running comes first"
    assert [s.id for s in scheduler.waiting] == ["b"]
    for _ in range(2):
        scheduler.remove(scheduler.running[0])
    scheduler.add(request("late", "interactive", "z", 50.0))
    # Aged by 50 s, two lanes, the background request is as urgent as a new interactive one, and older.
    assert [s.id for s in scheduler.admit(50.0)] == ["b", "late"]


# --------------------------------------------------------------------------- who gives its place to whom


def scheduler_of(parallel: int) -> Scheduler:
    return Scheduler(SlotTable(4, 220, FakeMemory()), parallel=parallel, max_waiting=9, sequence_limit=220)


def run(scheduler: Scheduler, item: SequenceState, read: int) -> None:
    """Admit a request and prefill that many tokens of its prompt."""
    scheduler.add(item)
    assert scheduler.admit(0.0) == [item]
    assert item.slot is not None
    scheduler.slots.append(item.slot, item.tokens[:read], item.shared)
    item.done = read


def test_interactive_takes_the_place_of_running_background() -> None:
    scheduler = scheduler_of(1)
    run(scheduler, generation("background", "background", [1, 2, 3]), read=3)
    scheduler.add(generation("interactive", "interactive", [4, 5, 6], arrived=1.0))
    scheduler.admit(1.0)
    assert [s.id for s in scheduler.running] == ["interactive"]
    assert [s.id for s in scheduler.waiting] == ["background"]


def test_interactive_takes_the_cells_of_running_background() -> None:
    scheduler = scheduler_of(2)
    run(scheduler, generation("background", "background", [1] * 150), read=150)
    scheduler.add(generation("interactive", "interactive", [2] * 100))
    scheduler.admit(0.0)
    assert [s.id for s in scheduler.running] == ["interactive"]


@pytest.mark.parametrize("first", [0, 1000], ids=["its prefix is coming", "it does not fit"])
def test_nobody_loses_a_place_to_a_request_that_cannot_have_it(first: int) -> None:
    scheduler = scheduler_of(2)
    run(scheduler, generation("reads", "interactive", list(range(100))), read=50)
    run(scheduler, generation("rests", "background", [500]), read=1)
    scheduler.add(generation("comes", "interactive", list(range(first, first + 150))))
    assert scheduler.admit(0.0) == []
    assert [one.id for one in scheduler.running] == ["reads", "rests"]
