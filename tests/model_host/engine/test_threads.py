"""The tuner of threads: pure, over made-up machines."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model_host.engine.thread_speeds import Speeds, candidates, measure, parse_speeds
from model_host.engine.threads import ThreadTuner, size_class

# Seconds a batch by number of threads.
Costs = dict[int, float]


class Machinery:
    """Other programs, made up."""

    def __init__(self, cores: int) -> None:
        self.cores = cores
        self.wanted = 0
        self.spinning = 0  # of our own threads, when a batch has just ended

    def others(self, looks: int = 4) -> int:
        return self.wanted + self.spinning * (looks == 1)


def alone(most: int, speeds: Speeds | None = None) -> ThreadTuner:
    """A tuner on a machine that nobody else uses, as far as the system tells."""
    return ThreadTuner(most, speeds or {}, Machinery(most))


def work(
    tuner: ThreadTuner, tokens: int, costs: Costs, seconds: float, company: Machinery | None = None
) -> tuple[float, int]:
    """Compute batches for so long; seconds a batch on average, and the number of threads at the end."""
    spent, batches, threads = 0.0, 0, 0
    while spent < seconds:
        threads = tuner.choose(tokens)
        if company is not None:
            company.spinning = threads - 1
        tuner.note(tokens, costs[threads])
        spent += costs[threads]
        batches += 1
    return spent / batches, threads


def test_candidates_are_powers_of_two_and_all() -> None:
    assert [candidates(most) for most in (1, 2, 6, 8)] == [(1,), (1, 2), (1, 2, 4, 6), (1, 2, 4, 8)]


def test_sizes_are_exact_up_to_eight() -> None:
    assert [size_class(tokens) for tokens in (1, 7, 8, 9, 15, 16, 500)] == [1, 7, 8, 8, 8, 16, 256]


@pytest.mark.parametrize("tokens", [1, 4, 200])
@pytest.mark.parametrize("costs", [{1: 0.010, 2: 0.006}, {1: 0.010, 2: 0.080}, {1: 0.4, 2: 0.2}])
def test_trials_cost_next_to_nothing(tokens: int, costs: Costs) -> None:
    tuner = alone(2)
    work(tuner, tokens, costs, 20)
    mean, _ = work(tuner, tokens, costs, 100)
    assert mean < 1.05 * min(costs.values())
    assert tuner.chosen() == {size_class(tokens): min(costs, key=lambda threads: costs[threads])}


@pytest.mark.parametrize("tokens", [1, 3, 500])
def test_what_longer_contexts_cost_is_no_reason_to_try(tokens: int) -> None:
    """Batches that become slow while nobody is there are taken as they are, unless they are many times slower."""
    tuner = alone(2, {1: {1: 100.0, 2: 180.0}, 64: {1: 100.0, 2: 180.0}})
    work(tuner, tokens, {1: 0.010 * tokens, 2: 0.0055 * tokens}, 30)
    for slower in (1.7, 2.7, 3.7):
        seconds = 0.0055 * tokens * slower
        for _ in range(60):
            assert tuner.choose(tokens) == 2
            tuner.note(tokens, seconds)
    for _ in range(60):
        if tuner.choose(tokens) == 1:
            return
        tuner.note(tokens, 40 * 0.0055 * tokens)
    raise AssertionError("nothing is tried against what nobody can be seen to do")


QUIET: Costs = {1: 0.010, 2: 0.006}
CROWDED: Costs = {1: 0.010, 2: 0.300}
MEASURED: Speeds = {1: {1: 100.0, 2: 166.0}}


@pytest.mark.parametrize("speeds", [{}, MEASURED])
@pytest.mark.parametrize("tokens", [1, 3, 500])
def test_neighbours_who_come_and_go_are_noticed(tokens: int, speeds: Speeds) -> None:
    tuner = alone(2, speeds)
    for costs in (QUIET, CROWDED, QUIET):
        work(tuner, tokens, costs, 20)
        mean, _ = work(tuner, tokens, costs, 30)
        assert mean < 1.1 * min(costs.values())
        assert tuner.chosen()[size_class(tokens)] == min(costs, key=lambda each: costs[each])


@pytest.mark.parametrize("tokens", [1, 3, 500])
def test_a_neighbour_who_comes_is_noticed_within_a_few_batches(tokens: int) -> None:
    tuner = alone(2, MEASURED)
    work(tuner, tokens, QUIET, 30)
    taken = [tuner.choose(tokens)]
    while taken[-1] == 2:
        tuner.note(tokens, CROWDED[2])
        taken.append(tuner.choose(tokens))
    assert len(taken) < 8


def test_one_token_has_the_same_number_of_threads_as_long_as_nothing_changes() -> None:
    tuner = alone(2, MEASURED)
    noise = random.Random(1)
    for _ in range(20_000):
        assert tuner.choose(1) == 2
        tuner.note(1, 0.006 * noise.uniform(0.9, 1.3))


def test_more_threads_than_were_measured_to_be_best_get_another_chance() -> None:
    tuner = alone(2, {1: {1: 100.0, 2: 20.0}})
    work(tuner, 1, QUIET, 0.4)
    assert tuner.chosen() == {1: 1}
    work(tuner, 1, QUIET, 0.2)
    assert tuner.chosen() == {1: 2}


def test_a_second_chance_that_failed_is_not_given_again_for_long() -> None:
    tuner = alone(2, {1: {1: 100.0, 2: 20.0}})
    work(tuner, 1, CROWDED, 3)
    taken: set[int] = set()
    for _ in range(1_500):
        taken.add(tuner.choose(1))
        tuner.note(1, CROWDED[1])
    assert taken == {1}


def test_what_one_size_finds_out_about_neighbours_holds_for_all() -> None:
    company = Machinery(2)
    tuner = ThreadTuner(2, MEASURED, company)
    for tokens in (1, 2, 500):
        work(tuner, tokens, QUIET, 5)
    company.wanted = 2
    work(tuner, 1, CROWDED, 0.3, company)
    assert [tuner.choose(tokens) for tokens in (2, 500, 70)] == [1, 1, 1], "70 had never come before"
    for tokens in (2, 500, 70):
        tuner.note(tokens, CROWDED[1])
    company.wanted = 0
    work(tuner, 1, QUIET, 0.1, company)
    assert [tuner.choose(tokens) for tokens in (1, 2, 500, 70, 3)] == [2, 2, 2, 2, 2]


@pytest.mark.parametrize(
    ("most", "cores", "others", "share"), [(2, 2, 2, 1), (8, 8, 8, 4), (8, 16, 40, 4), (3, 3, 90, 1)]
)
def test_who_comes_during_a_pause_costs_no_slow_batch(most: int, cores: int, others: int, share: int) -> None:
    company = Machinery(cores)
    tuner = ThreadTuner(most, {1: {1: 1.0, most: 9.0}, 64: {1: 1.0, most: 9.0}}, company)
    costs = {threads: 0.1 / threads for threads in candidates(most)}
    work(tuner, 1, costs, 5)
    company.wanted = others
    tuner.resume()
    assert (tuner.choose(1), tuner.choose(300)) == (share, share)
    company.wanted = 0
    tuner.resume()
    assert (tuner.choose(1), tuner.choose(300)) == (most, most)
    company.wanted = cores - 1
    tuner.resume()
    assert tuner.choose(1) == most, "somebody, but not on all cores"


def test_what_was_found_beside_others_is_not_forgotten_at_a_pause() -> None:
    company = Machinery(2)
    tuner = ThreadTuner(2, MEASURED, company)
    work(tuner, 1, QUIET, 5)
    company.wanted = 2
    tuner.resume()
    assert tuner.choose(1) == 1
    company.wanted = 1
    work(tuner, 1, QUIET, 10, company)
    assert tuner.chosen() == {1: 2}, "a trial showed that they hinder nobody"
    company.wanted = 2
    tuner.resume()
    assert tuner.choose(1) == 2


@pytest.mark.parametrize("tokens", [1, 3, 500])
def test_nothing_dear_is_tried_while_others_want_all_cores(tokens: int) -> None:
    company = Machinery(2)
    tuner = ThreadTuner(2, MEASURED, company)
    work(tuner, tokens, QUIET, 5)
    company.wanted = 2
    slow = 0
    for _ in range(10_000):
        threads = tuner.choose(tokens)
        slow += threads == 2
        company.spinning = threads - 1
        tuner.note(tokens, CROWDED[threads])
    assert slow <= 2


@settings(max_examples=50)
@given(
    st.sampled_from([3, 4, 8, 12]),
    st.floats(0.02, 0.2),
    st.floats(0.0, 0.9),
    st.floats(0.0, 0.3),
)
def test_the_best_of_many_is_found(most: int, once: float, together: float, each: float) -> None:
    # Amdahl's law, and a cost of waiting that grows with the number: one best number, without valleys.
    costs = {n: once * (1 - together + together / n + each * (n - 1) / n) for n in range(1, most + 1)}
    tuner = alone(most)
    work(tuner, 1, costs, 60)
    mean, _ = work(tuner, 1, costs, 60)
    # Numbers that differ by less than what is told apart from noise are as good as each other.
    assert mean < 1.2 * min(costs[n] for n in candidates(most))


def test_what_was_measured_holds_for_sizes_like_it_and_for_numbers_that_there_are() -> None:
    tuner = alone(4, {1: {1: 9.0, 4: 5.0}, 64: {1: 1.0, 4: 4.0}, 8: {16: 3.0}})
    assert [tuner.choose(tokens) for tokens in (1, 4, 32, 500)] == [1, 1, 4, 4]
    assert tuner.chosen() == {1: 1, 4: 1, 32: 4, 64: 4, 256: 4}
    assert alone(1).choose(5) == 1


class Machine:
    """A clock, and batches that take their time on it."""

    def __init__(self, seconds: Callable[[int, int], float]) -> None:
        self.now = 0.0
        self._seconds = seconds

    def run(self, tokens: int, threads: int) -> None:
        self.now += self._seconds(tokens, threads)

    def measured(self, most: int, limit: int = 512) -> dict[int, dict[int, int]]:
        found = measure(self.run, most, limit, lambda: self.now)
        assert alone(most, found).chosen() == {
            size: max(known, key=lambda n: known[n]) for size, known in found.items()
        }
        return {size: {n: round(speed) for n, speed in known.items()} for size, known in found.items()}


def test_measuring_finds_the_speeds_and_ends_in_time() -> None:
    machine = Machine(
        lambda tokens, threads: tokens * (0.010 if threads == 1 else 0.014 if tokens == 1 else 0.007)
    )
    assert machine.measured(2) == {1: {2: 71, 1: 100}, 8: {2: 143, 1: 100}, 64: {2: 143, 1: 100}}
    assert machine.now < 3
    assert machine.measured(2, limit=32).keys() == {1, 8}
    assert machine.measured(1) == {}


def test_a_large_model_on_many_cores_is_measured_in_seconds() -> None:
    machine = Machine(lambda tokens, threads: (0.2 + 0.1 * tokens) * 8 / threads)
    assert list(machine.measured(32)) == [8, 1]
    assert machine.now < 3
    machine = Machine(lambda tokens, threads: 4 * (0.2 + 0.1 * tokens) * 8 / threads)
    assert list(machine.measured(8)) == [8, 1]
    assert machine.now < 20


def test_speeds_on_the_command_line() -> None:
    assert parse_speeds("1:1:108.5,1:2:166,64:2:8e2") == {1: {1: 108.5, 2: 166.0}, 64: {2: 800.0}}
    assert parse_speeds("") == {}
    for wrong in ("1", "1:2:3:4", "a:1:2", "0:1:2", "1:1:0", "1:1:nan"):
        with pytest.raises(ValueError, match=r"unpack|invalid literal|above zero"):
            parse_speeds(wrong)
