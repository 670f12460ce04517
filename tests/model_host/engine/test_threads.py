"""Thread plans, measured on fake machines and in a real host."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.benchmarking.cpu_load import busy_loops
from model_host.engine.threads import Speeds, candidates, fastest, measure, nearest, parse_plan
from tests.model_host.conftest import StartHost
from tests.waiting import eventually

CORES = len(os.sched_getaffinity(0))
needs_two_cores = pytest.mark.skipif(CORES < 2, reason="one core leaves nothing to choose")


def test_candidates_are_powers_of_two_and_all() -> None:
    assert [candidates(most) for most in (1, 2, 6, 8)] == [(1,), (1, 2), (1, 2, 4, 6), (1, 2, 4, 8)]


class Machine:
    """A clock that batches advance."""

    def __init__(self, seconds: Callable[[int, int], float]) -> None:
        self.now = 0.0
        self._seconds = seconds

    def run(self, tokens: int, threads: int) -> None:
        self.now += self._seconds(tokens, threads)

    def measured(self, most: int, limit: int = 512) -> Speeds:
        found = measure(self.run, most, limit, lambda: self.now)
        return {size: {n: round(speed) for n, speed in known.items()} for size, known in found.items()}


def one_or_two(tokens: int, threads: int) -> float:
    """Seconds on a machine where one thread is best for one token, and two for more."""
    return tokens * (0.010 if threads == 1 else 0.014 if tokens == 1 else 0.007)


def test_measuring_finds_the_speeds_and_ends_in_time() -> None:
    machine = Machine(one_or_two)
    speeds = machine.measured(2)
    assert speeds == {1: {2: 71, 1: 100}, 8: {2: 143, 1: 100}, 64: {2: 143, 1: 100}}
    assert fastest(speeds) == {1: 1, 8: 2, 64: 2}
    assert machine.now < 3
    assert machine.measured(2, limit=32).keys() == {1, 8}


def test_a_large_model_on_many_cores_is_measured_in_seconds() -> None:
    machine = Machine(lambda tokens, threads: (0.2 + 0.1 * tokens) * 8 / threads)
    assert list(machine.measured(32)) == [8, 1]
    assert machine.now < 3
    machine = Machine(lambda tokens, threads: 4 * (0.2 + 0.1 * tokens) * 8 / threads)
    assert list(machine.measured(8)) == [8, 1]
    assert machine.now < 20


def test_a_batch_takes_the_threads_of_the_nearest_size() -> None:
    plan = {8: 4, 64: 8, 1: 2}
    assert [nearest(plan, tokens) for tokens in (1, 2, 3, 8, 22, 23, 500)] == [2, 2, 4, 4, 4, 8, 8]


def test_a_plan_on_the_command_line() -> None:
    assert parse_plan("1:1,64:2") == {1: 1, 64: 2}
    for wrong in ("", "1", "1:2:3", "a:1"):
        with pytest.raises(ValueError, match=r"unpack|invalid literal"):
            parse_plan(wrong)


@needs_two_cores
def test_a_host_without_a_plan_measures_one(start_host: StartHost) -> None:
    ready = start_host("--threads", "0").ready
    assert ready is not None
    speeds = {int(size): known for size, known in ready["thread_speeds"].items()}
    # Nothing is measured while other tests keep the cores busy.
    assert speeds.keys() in ({1, 8, 64}, {1, 8}, set())
    assert ready["thread_plan"].keys() == {str(size) for size in speeds or [1]}


@needs_two_cores
def test_a_host_beside_busy_programs_measures_nothing(start_host: StartHost) -> None:
    with busy_loops(2 * CORES):
        ready = start_host("--threads", "0").ready
    assert ready is not None
    assert ready["thread_speeds"] == {}
    assert ready["thread_plan"] == {"1": CORES}


@needs_two_cores
def test_busy_programs_halve_the_threads(start_host: StartHost) -> None:
    host = start_host("--threads", "0", "--thread-plan", f"1:1,64:{CORES}")
    assert host.ready is not None
    assert host.ready["thread_speeds"] == {}, "it was told, and need not measure"
    numbers = itertools.count()

    def plan() -> object:
        request_id = f"stats-{next(numbers)}"
        host.send(op="stats", id=request_id)
        return host.end(request_id)["thread_plan"]

    assert plan() == {"1": 1, "64": CORES}
    with busy_loops(2 * CORES):
        host.send(op="generate", id="long", prompt="a text", max_tokens=8000, ignore_eos=True)
        eventually(lambda: plan() == {"1": 1, "64": CORES // 2}, "the threads were not halved")


@needs_two_cores
def test_busy_programs_halve_the_threads_of_vectors(
    start_host: StartHost, tiny_embedding_model: Path
) -> None:
    host = start_host("--embedding", "--threads", "0", model=tiny_embedding_model)
    numbers = itertools.count()

    def plan() -> object:
        """The threads while many texts are embedded, which an abort at the start must not harm."""
        number = next(numbers)
        host.send(op="embed", id=f"texts-{number}", texts=["a text " * 50] * 200)
        host.send(op="stats", id=f"stats-{number}")
        found = host.end(f"stats-{number}")["thread_plan"]
        assert host.end(f"texts-{number}")["event"] == "embedded"
        return found

    with busy_loops(2 * CORES):
        eventually(lambda: plan() == {"1": CORES // 2}, "the threads were not halved")
