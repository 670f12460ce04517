"""The shares of a step: background turns, prompts, step time. Without a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.batching.batches import batches
from model_host.batching.pace import ALONE_SECONDS, SMALLEST, STREAMING_SECONDS, Pace
from model_host.batching.scheduler import BACKGROUND_SHARE, BACKGROUND_TURN, OLDEST_TURN, Scheduler
from model_host.batching.slots import SlotTable
from model_host.batching.tiles import TILE_ROWS
from tests.model_host.conftest import StartHost
from tests.model_host.fakes import FakeMemory, generation


def scheduler_with(*requests: tuple[str, str, int], decoding: tuple[str, ...] = ()) -> Scheduler:
    """A scheduler that runs requests (name, lane, prompt tokens); those ``decoding`` have prefilled."""
    made = Scheduler(SlotTable(16, 10_000, FakeMemory()), parallel=8, max_waiting=9, sequence_limit=5000)
    for number, (name, lane, prompt) in enumerate(requests):
        tokens = [number * 1000 + i for i in range(prompt)]
        made.add(generation(name, lane, tokens, owner=name, arrived=number, answer=100))  # type: ignore[arg-type]
    made.admit(10.0)
    assert len(made.running) == len(requests)
    for sequence in made.running:
        if sequence.id in decoding:
            sequence.done = sequence.prompt_length
            sequence.tokens.append(1)
    return made


def plan(scheduler: Scheduler, budget: int = 128) -> dict[str, int]:
    return {feed.sequence.id: feed.count for feed in scheduler.plan(budget, 10.0)}


def test_background_rests_while_somebody_is_answered() -> None:
    scheduler = scheduler_with(
        ("chat", "interactive", 4),
        ("b1", "background", 900),
        ("b2", "background", 50),
        decoding=("chat", "b2"),
    )
    steps = [plan(scheduler) for _ in range(2 * BACKGROUND_TURN)]
    assert all(step["chat"] == 1 for step in steps)
    shared = [step for step in steps if len(step) > 1]
    assert len(shared) == 2, "now and then a step, so that background work never stands still"
    assert all(step["b2"] == 1 and step["b1"] < 128 // BACKGROUND_SHARE for step in shared)


def test_prompts_are_read_apart_from_what_is_decoded() -> None:
    scheduler = scheduler_with(
        ("a", "interactive", 40), ("b", "interactive", 90), ("c", "interactive", 900), decoding=("a", "b")
    )
    made = batches(scheduler.plan(130, 10.0))
    assert [[(feed.sequence.id, feed.count) for feed in batch] for batch in made] == [
        [("a", 1), ("b", 1)],
        [("c", 128)],
    ]
    made = batches(scheduler.plan(TILE_ROWS + 1, 10.0))
    assert [[feed.count for feed in batch] for batch in made] == [[1, 1, TILE_ROWS - 1]], (
        "no tiles, no parting"
    )
    assert batches([]) == []


def test_background_has_everything_when_alone() -> None:
    scheduler = scheduler_with(("b1", "background", 900), ("b2", "background", 50), decoding=("b2",))
    assert plan(scheduler) == {"b1": 127, "b2": 1}


def test_a_short_prompt_does_not_wait_for_a_long_one() -> None:
    scheduler = scheduler_with(("long", "interactive", 4000), ("short", "interactive", 40))
    assert plan(scheduler) == {"short": 40}, "and the step ends with it, so that its answer can begin"


def test_a_step_ends_with_a_prompt_so_that_its_answer_can_begin() -> None:
    scheduler = scheduler_with(*((f"user{n}", "interactive", 40) for n in range(4)))
    assert plan(scheduler) == {"user0": 40}
    scheduler = scheduler_with(*((f"user{n}", "interactive", 10) for n in range(8)))
    assert plan(scheduler) == {f"user{n}": 10 for n in range(4)}, "but tiny ones go together"


def test_prompts_are_read_one_after_the_other() -> None:
    alike = scheduler_with(("one", "interactive", 900), ("two", "interactive", 900))
    assert plan(alike) == {"one": 128}


def test_a_long_prompt_gets_on_beside_shorter_ones() -> None:
    scheduler = scheduler_with(("long", "interactive", 1000), ("shorter", "interactive", 900))
    steps = [plan(scheduler) for _ in range(2 * OLDEST_TURN)]
    assert steps.count({"long": 128}) == 2
    assert steps.count({"shorter": 128}) == 2 * OLDEST_TURN - 2
    scheduler = scheduler_with(("pages", "retrieval", 1000), ("chat", "interactive", 900))
    assert all(plan(scheduler) == {"chat": 128} for _ in range(OLDEST_TURN)), "but only within its lane"


def test_retrieval_reads_after_interactive() -> None:
    scheduler = scheduler_with(("pages", "retrieval", 40), ("chat", "interactive", 100))
    assert plan(scheduler) == {"chat": 100}
    scheduler = scheduler_with(("pages", "retrieval", 40), ("chat", "interactive", 10))
    assert plan(scheduler) == {"chat": 10, "pages": 40}


def test_nobody_waits_for_a_prefix_that_rests() -> None:
    scheduler = Scheduler(SlotTable(16, 10_000, FakeMemory()), parallel=8, max_waiting=9, sequence_limit=5000)
    for name, lane in (("summary", "background"), ("chat", "interactive")):
        scheduler.add(generation(name, lane, list(range(500))))  # type: ignore[arg-type]
        scheduler.admit(0.0)
    assert [s.id for s in scheduler.running] == ["summary", "chat"]


@given(st.lists(st.tuples(st.integers(0, 600), st.floats(0.0, 20.0)), max_size=40), st.integers(8, 600))
def test_a_budget_is_always_within_the_chunk(steps: list[tuple[int, float]], chunk: int) -> None:
    pace = Pace(chunk)
    for tokens, seconds in steps:
        for streaming in (True, False):
            assert min(chunk, SMALLEST) <= pace.budget(streaming=streaming, decoding=3) <= chunk
        pace.measured(tokens, seconds)


@pytest.mark.parametrize(("streaming", "seconds"), [(True, STREAMING_SECONDS), (False, ALONE_SECONDS)])
def test_steps_take_the_time_they_should(streaming: bool, seconds: float) -> None:
    pace = Pace(4096)
    for _ in range(30):  # a machine that prefills 500 tokens/s
        tokens = pace.budget(streaming=streaming, decoding=0)
        pace.measured(tokens, tokens / 500)
    assert pace.budget(streaming=streaming, decoding=0) == pytest.approx(500 * seconds, rel=0.05)


def test_an_answer_overtakes_prompts_of_the_background(start_host: StartHost) -> None:
    host = start_host("--context", "8192")
    long = " ".join(f"word{i}" for i in range(900))
    for name in ("b1", "b2"):
        host.generate(name, f"{name} {long}", lane="background", max_tokens=300, ignore_eos=True)
    host.first("b1", "started")
    host.generate("chat", "hello", max_tokens=20, ignore_eos=True)
    assert host.end("chat")["completion_tokens"] == 20
    assert not [e for name in ("b1", "b2") for e in host.events[name] if e["event"] == "finished"]
    for name in ("b1", "b2"):
        assert host.end(name, 60)["completion_tokens"] == 300
