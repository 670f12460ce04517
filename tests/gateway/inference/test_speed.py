"""The speed of a model: measured at the first load, learned from requests that run alone, kept for the next start."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.inference.host import HostInference
from gateway.inference.interface import HostHealth
from gateway.inference.process.thread_plans import ThreadPlans
from gateway.inference.speed import DEPTH, Learned, Rate, Speed, effort
from model_host.protocol import Finished, Lane
from tests.gateway.inference.helpers import MakeHost, call, collect

FIRST = Speed(700.0, 100.0)  # what the fake host measures at its first load
# What it says of each request when it is timed, as tokens at depth 0.
READ, WRITTEN = Rate(effort(400), 4.2), Rate(effort(80, 400), 9.0)


def finished(prompt: int, cached: int, written: int, reading: float, writing: float) -> Finished:
    return Finished(
        id="x", reason="stop", prompt_tokens=prompt, cached_tokens=cached, completion_tokens=written,
        prefill_seconds=reading, decode_seconds=writing,
    )  # fmt: skip


def test_a_token_at_depth_takes_twice_as_long() -> None:
    at_depth = effort(100, int(DEPTH)) / effort(100)
    assert at_depth == pytest.approx(2.0, rel=0.02)
    assert effort(1000) == pytest.approx(effort(400) + effort(600, 400)), "in parts or at once"
    assert Speed(100.0, 10.0).seconds(100, 10) == pytest.approx(1.0125 + (1 + 105 / DEPTH))
    assert Speed(100.0, 10.0).shared(4).seconds(100, 10) == 4 * Speed(100.0, 10.0).seconds(100, 10)


@given(
    reading=st.floats(1, 10_000), writing=st.floats(0.1, 1000),
    prompts=st.lists(st.tuples(st.integers(64, 4000), st.integers(10, 800)), min_size=12, max_size=20),
)  # fmt: skip
def test_the_true_speed_is_learned_from_prompts_of_any_length(
    reading: float, writing: float, prompts: list[tuple[int, int]]
) -> None:
    true = Speed(reading, writing)
    known = Learned.first({64: {1: 3 * reading}, 1: {1: writing / 3}})
    for prompt, written in prompts:
        read, all_of_it = true.seconds(prompt, 0), true.seconds(prompt, written)
        known = known.add(finished(prompt, 0, written + 1, read, all_of_it - read))
    speed = known.speed
    assert speed is not None
    assert reading * 0.99 <= speed.reading <= 3 * reading
    assert writing / 3 <= speed.writing <= writing * 1.01
    if sum(prompt for prompt, _ in prompts) > 20_000:
        assert speed.reading == pytest.approx(reading, rel=0.1)


@given(st.lists(st.tuples(st.floats(1, 1e4), st.floats(1e-3, 1e3)), min_size=1))
def test_a_rate_is_between_the_slowest_and_the_fastest_call(calls: list[tuple[float, float]]) -> None:
    rate = Rate()
    for tokens, seconds in calls:
        rate = rate.add(tokens, seconds, 500.0).add(0, seconds, 500.0)
    speeds = [tokens / seconds for tokens, seconds in calls]
    assert rate.value is not None
    assert min(speeds) * 0.999 <= rate.value <= max(speeds) * 1.001


def test_short_requests_say_nothing_about_a_known_speed() -> None:
    known = Learned().add(finished(10, 0, 3, 1.0, 1.0))
    assert known.speed is not None, "but are better than nothing"
    assert Learned().add(finished(10, 10, 1, 1.0, 0.0)).speed is None
    learned = known.add(finished(500, 0, 50, 1.0, 1.0))
    assert learned.add(finished(520, 500, 3, 9.0, 9.0)) == learned


async def generate(host: HostInference, lane: Lane = "interactive") -> None:
    await collect(host, call(lane=lane, max_tokens=2))


def speed_of(health: HostHealth) -> tuple[float, float]:
    assert health.speed is not None
    return health.speed.reading, health.speed.writing


async def test_the_first_load_measures_and_requests_correct_it(tmp_path: Path, make_host: MakeHost) -> None:
    plans = ThreadPlans(tmp_path / "threads")
    host = make_host("--measured", "--timed", thread_plans=plans)
    assert host.health().speed is None, "nothing is loaded"
    await host.warm()
    assert host.health().speed == FIRST
    await generate(host, "background")
    assert host.health().speed == FIRST, "background work gives way to others"
    await generate(host)
    reading, writing = speed_of(host.health())
    assert READ.value is not None and WRITTEN.value is not None
    assert READ.value < reading < FIRST.reading / 2
    assert WRITTEN.value <= writing < FIRST.writing / 2
    (kept,) = plans.all()
    assert kept.learned is not None and kept.learned.speed == Speed(reading, writing)
    assert kept.speeds[64] == {1: 400.0, 2: 700.0}, "the table of threads stays"
    again = make_host("--measured", thread_plans=plans)
    await again.warm()
    assert speed_of(again.health()) == (reading, writing), "known at once after a restart"


async def test_a_speed_that_was_not_measured_is_learned_and_kept(tmp_path: Path, make_host: MakeHost) -> None:
    plans = ThreadPlans(tmp_path / "threads")
    host = make_host("--timed", thread_plans=plans, threads=2)
    await host.warm()
    assert host.health().speed is None
    await generate(host)
    learned = speed_of(host.health())
    assert learned == (READ.value, WRITTEN.value)
    (kept,) = plans.all()
    assert (kept.plan, kept.speeds) == ({}, {})
    other = make_host(thread_plans=plans, threads=1)
    await other.warm()
    assert other.health().speed is None, "with another number of threads it is another speed"


async def test_requests_side_by_side_measure_nothing(tmp_path: Path, make_host: MakeHost) -> None:
    host = make_host("--measured", "--timed", "--delta-seconds", 0.05, thread_plans=ThreadPlans(tmp_path))
    await host.warm()
    await asyncio.gather(generate(host), generate(host))
    assert host.health().speed == FIRST
    assert host.health().foreground == 0
    await asyncio.gather(generate(host), generate(host, "background"))
    assert host.health().speed != FIRST
