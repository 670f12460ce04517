"""How long a call of the model still takes, by a clock that the test moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.memory.pace import Pace
from model_host.protocol import Delta, Prefill, Queued, Started
from tests.gateway.inference.test_speed import finished


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def pace(clock: Clock) -> Pace:
    """Reads 100 tokens a second and writes 10."""
    made = Pace(clock)
    made.measure(finished(1000, 0, 50, 10.0, 5.0))
    return made


def test_nothing_is_known_before_the_first_call_has_ended(clock: Clock) -> None:
    pace = Pace(clock)
    assert pace.seconds_left("c1") == 0.0, "nothing runs"
    with pace.working("c1", "summary_now", 100) as work:
        assert pace.seconds_left("c1") is None
        work.take(Started("x", 500, 400, 0.0))
        assert pace.seconds_left("c1") is None
    assert pace.seconds_left("c1") == 0.0


def test_reading_and_writing_are_counted_down(clock: Clock, pace: Pace) -> None:
    with pace.working("c1", "summary_now", 100) as work:
        assert pace.seconds_left("c1") is None, "it may wait for a place"
        work.take(Queued("x", 2, 3.0))
        assert pace.seconds_left("c1") is None
        work.take(Started("x", 700, 400, 0.0))
        assert pace.seconds_left("c1") == pytest.approx(3.0 + 10.0)
        work.take(Prefill("x", 600, 700))
        assert pace.seconds_left("c1") == pytest.approx(1.0 + 10.0)
        work.take(Delta("x", "a", 1))
        assert pace.seconds_left("c1") == pytest.approx(10.0)
        clock.now += 4.0  # it writes five tokens a second, only half as fast as those before it
        work.take(Delta("x", "b", 20))
        assert pace.seconds_left("c1") == pytest.approx(80 / 5)
        assert pace.seconds_left("c2") == 0.0
        work.take(finished(700, 400, 40, 3.0, 8.0))
    with pace.working("c1", "summary_now", 100) as work:  # like the last one, this will have forty
        work.take(Started("x", 700, 700, 0.0))
        assert pace.seconds_left("c1") == pytest.approx(40 / 10)


def test_the_slowest_of_several_calls_counts_and_what_follows_is_added(clock: Clock, pace: Pace) -> None:
    with pace.working("c1", "a", 10) as short, pace.working("c1", "b", 20, following=2) as long:
        short.take(Started("x", 100, 100, 0.0))
        assert pace.seconds_left("c1") is None, "one of them has not begun"
        long.take(Started("y", 100, 0, 0.0))
        assert pace.seconds_left("c1") == pytest.approx(3 * (1.0 + 2.0))


@given(
    st.lists(st.tuples(st.integers(0, 300), st.floats(0, 5)), max_size=30), st.integers(1, 200), st.integers(0, 20)
)  # fmt: skip
def test_what_is_left_is_never_negative(pieces: list[tuple[int, float]], most: int, following: int) -> None:
    clock = Clock()
    pace = Pace(clock)
    pace.measure(finished(1000, 0, 50, 10.0, 5.0))
    with pace.working("c1", "a", most, following) as work:
        work.take(Started("x", 50, 20, 0.0))
        for tokens, seconds in pieces:
            clock.now += seconds
            work.take(Delta("x", "a", tokens))
            left = pace.seconds_left("c1")
            assert left is not None and left >= 0
