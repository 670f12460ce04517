"""The scheduler alone: requests in every order and company, lanes, owners."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from model_host.batching.request import SequenceState
from model_host.batching.scheduler import Scheduler
from model_host.batching.slots import SlotTable
from model_host.replies.reply import Reply
from tests.model_host.fakes import CountingSampler, FakeMemory


def simulate(
    requests: list[tuple[int, str, int, int, int]], *, cells: int, parallel: int, budget: int
) -> dict[str, list[int]]:
    """Run requests (arrival step, lane, owner, prompt length, answer length) to their end; their tokens by id."""
    memory = FakeMemory()
    table = SlotTable(2 * parallel, cells, memory)
    scheduler = Scheduler(table, parallel=parallel, max_waiting=1000, sequence_limit=cells)
    coming = sorted(enumerate(requests), key=lambda r: r[1][0])
    finished: dict[str, list[int]] = {}
    step = 0
    while coming or scheduler.waiting or scheduler.running:
        now = float(step)
        while coming and coming[0][1][0] <= step:
            number, (_, lane, owner, prompt, answer) = coming.pop(0)
            scheduler.add(
                SequenceState(
                    id=str(number),
                    lane=lane,  # type: ignore[arg-type]
                    owner=f"o{owner}",
                    tokens=[(number * 7 + i) % 50 for i in range(prompt)],
                    shared=0,
                    max_tokens=answer,
                    sampler=CountingSampler(number),
                    reply=Reply(),
                    arrived=now,
                )
            )
        scheduler.admit(now)
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


REQUEST = st.tuples(
    st.integers(0, 40),
    st.sampled_from(["interactive", "retrieval", "background"]),
    st.integers(0, 2),
    st.integers(1, 60),
    st.integers(1, 30),
)


@settings(max_examples=60)
@given(st.lists(REQUEST, min_size=1, max_size=14), st.integers(1, 4), st.integers(4, 32))
def test_every_request_ends_with_the_tokens_it_has_alone(
    requests: list[tuple[int, str, int, int, int]], parallel: int, budget: int
) -> None:
    """Small caches force preemption; what a sequence generates does not depend on its company."""
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
    def sequence(name: str, lane: str, owner: str, arrived: float) -> SequenceState:
        return SequenceState(
            id=name,
            lane=lane,  # type: ignore[arg-type]
            owner=owner,
            tokens=[*name.encode(), *range(5)],
            shared=0,
            max_tokens=5,
            sampler=CountingSampler(1),
            reply=Reply(),
            arrived=arrived,
        )

    scheduler = Scheduler(SlotTable(8, 1000, FakeMemory()), parallel=2, max_waiting=9, sequence_limit=1000)
    for item in (
        sequence("b", "background", "x", 0.0),
        sequence("x1", "interactive", "x", 1.0),
        sequence("x2", "interactive", "x", 2.0),
        sequence("y1", "interactive", "y", 3.0),
    ):
        scheduler.add(item)
    assert [s.id for s in scheduler.admit(4.0)] == ["x1", "x2"]
    scheduler.remove(scheduler.running[0])
    assert [s.id for s in scheduler.admit(4.0)] == ["y1"], "the owner with less running comes first"
    assert [s.id for s in scheduler.waiting] == ["b"]
    for _ in range(2):
        scheduler.remove(scheduler.running[0])
    scheduler.add(sequence("late", "interactive", "z", 50.0))
    # Aged by 50 s, two lanes, the background request is as urgent as a new interactive one, and older.
    assert [s.id for s in scheduler.admit(50.0)] == ["b", "late"]


def test_interactive_takes_the_place_of_running_background() -> None:
    scheduler = Scheduler(SlotTable(4, 500, FakeMemory()), parallel=1, max_waiting=9, sequence_limit=500)

    def add(name: str, lane: str, arrived: float) -> None:
        scheduler.add(
            SequenceState(
                id=name,
                lane=lane,  # type: ignore[arg-type]
                owner=name,
                tokens=[ord(name[0]), 1, 2],
                shared=0,
                max_tokens=5,
                sampler=CountingSampler(1),
                reply=Reply(),
                arrived=arrived,
            )
        )

    add("background", "background", 0.0)
    scheduler.admit(0.0)
    add("interactive", "interactive", 1.0)
    scheduler.admit(1.0)
    assert [s.id for s in scheduler.running] == ["interactive"]
    assert [s.id for s in scheduler.waiting] == ["background"]
