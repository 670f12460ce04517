"""The parts that are plain values: idle clock, breaker, counts, open requests, failures."""

from __future__ import annotations

import asyncio
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.base.errors import (
    HearthError,
    InvalidRequestError,
    ModelUnavailableError,
    OverloadedError,
    PromptTooLongError,
)
from gateway.inference.counts import BATCH_BYTES, BATCH_TEXTS, CountCache, batches
from gateway.inference.process.breaker import Breaker
from gateway.inference.process.failures import describe_exit, died, load_failure, request_failure
from gateway.inference.process.keepalive import IdleClock
from gateway.inference.process.link import OpenRequests
from model_host.protocol import Delta, Failed, FailureCode


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


# ------------------------------------------------------------------------------------------ keep-alive


def test_idle_time_counts_from_the_end_of_the_last_use() -> None:
    clock = Clock()
    idle = IdleClock(30.0, clock=clock)
    with idle.begin():
        clock.now += 500
        assert idle.deadline is None
    assert idle.seconds_left == 30
    clock.now += 31
    assert idle.seconds_left == 0


@pytest.mark.parametrize(("keep_alive", "left"), [(None, 30.0), (0.0, 0.0), (5.0, 5.0), (-1.0, None)])
def test_keep_alive_of_the_use_that_ends_last_decides(keep_alive: float | None, left: float | None) -> None:
    idle = IdleClock(30.0, clock=Clock())
    last, first = idle.begin(keep_alive), idle.begin(77.0)
    first.release()
    assert idle.deadline is None
    last.release()
    assert idle.seconds_left == left


def test_a_negative_default_keeps_forever_and_expire_overrides_it() -> None:
    idle = IdleClock(-1.0, clock=Clock())
    with idle.begin():
        idle.expire()
        assert idle.deadline is None
    assert idle.seconds_left == 0
    idle.restart()
    assert idle.deadline is None


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100))))
def test_a_held_use_is_open_until_the_last_holder_lets_go(steps: list[tuple[bool, float]]) -> None:
    clock = Clock()
    idle = IdleClock(10.0, clock=clock)
    use, holders = idle.begin(), 1
    for hold, seconds in steps:
        clock.now += seconds
        if hold:
            use.hold()
            holders += 1
        elif holders > 1:
            use.release()
            holders -= 1
        assert idle.open == 1
        assert idle.deadline is None
    for _ in range(holders):
        use.release()
    assert idle.open == 0
    assert idle.deadline == clock.now + 10


# --------------------------------------------------------------------------------------------- breaker


def broken(clock: Clock) -> Breaker:
    breaker = Breaker(cooldown=30, max_cooldown=300, clock=clock)
    for _ in range(3):
        assert breaker.refusal() is None
        breaker.crashed("it fell over")
        clock.now += 1
    return breaker


def test_three_crashes_in_a_minute_refuse_starts_with_reason_and_time() -> None:
    breaker = broken(Clock())
    refusal = breaker.refusal()
    assert refusal is not None
    assert refusal.retry_after == 29
    assert "it fell over" in refusal.message
    assert "29 s" in refusal.message


def test_crashes_far_apart_never_open_it() -> None:
    clock = Clock()
    breaker = Breaker(cooldown=30, max_cooldown=300, clock=clock)
    for _ in range(20):
        breaker.crashed("x")
        assert breaker.retry_after() is None
        clock.now += 31
    assert breaker.crashes == 20


def test_a_crash_after_the_cooldown_opens_it_for_twice_as_long() -> None:
    clock = Clock()
    breaker = broken(clock)
    for expected in (60, 120, 240, 300, 300):
        clock.now += breaker.retry_after() or 0
        assert breaker.refusal() is None
        breaker.crashed("again")
        assert breaker.retry_after() == expected


@pytest.mark.parametrize("good_end", [True, False])
def test_a_good_end_or_a_window_without_crash_closes_it(good_end: bool) -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 30
    if good_end:
        breaker.ended_well()
    else:
        clock.now += 61
    for _ in range(2):
        breaker.crashed("new trouble")
        assert breaker.retry_after() is None
    breaker.crashed("new trouble")
    assert breaker.retry_after() == 30


# ---------------------------------------------------------------------------------------------- counts


@given(st.lists(st.tuples(st.text(max_size=20), st.integers(0, 9))), st.integers(1, 5), st.integers(8, 100))
def test_the_count_cache_stays_within_its_bounds(
    puts: list[tuple[str, int]], max_entries: int, max_characters: int
) -> None:
    cache = CountCache(max_entries, max_characters)
    known: dict[str, int] = {}
    for text, count in puts:
        cache.put(text, known.setdefault(text, count))
        kept = [t for t in known if cache.get(t) is not None]
        assert len(kept) <= max_entries
        assert sum(map(len, kept)) <= max_characters
        assert all(cache.get(t) == known[t] for t in kept)


def test_another_model_empties_the_cache() -> None:
    cache = CountCache()
    cache.use_model("a")
    cache.put("text", 1)
    cache.use_model("a")
    assert cache.get("text") == 1
    cache.use_model("b")
    assert cache.get("text") is None


@given(st.lists(st.integers(0, BATCH_BYTES), max_size=12))
def test_batches_keep_every_text_in_order_and_fit_a_line(sizes: list[int]) -> None:
    texts = ["x" * size for size in sizes]
    made = list(batches(texts))
    assert [text for batch in made for text in batch] == texts
    assert all(sum(map(len, batch)) <= BATCH_BYTES for batch in made)


def test_batches_bound_the_number_of_texts() -> None:
    assert [len(batch) for batch in batches([""] * (BATCH_TEXTS + 1))] == [BATCH_TEXTS, 1]


# --------------------------------------------------------------------------------------- open requests


async def test_every_open_request_ends_once_and_no_more_are_accepted() -> None:
    ended: list[str] = []
    requests = OpenRequests()
    first = requests.open("a", lambda: ended.append("a"))
    second = requests.open("b", lambda: ended.append("b"))
    assert requests.dispatch(Failed("b", "internal", "x"))
    assert not requests.dispatch(Delta("b", "late", 1))
    error = ModelUnavailableError("gone", retry_after=1)
    requests.close(error)
    with pytest.raises(ModelUnavailableError, match="gone"):
        requests.open("c", lambda: None)
    requests.fail_all(error)
    requests.fail_all(error)
    assert ended == ["b", "a"]
    assert isinstance(await second.next_event(), Failed)
    with pytest.raises(ModelUnavailableError, match="gone"):
        await asyncio.wait_for(first.next_event(), 1)


# -------------------------------------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("bad_request", InvalidRequestError),
        ("bad_grammar", InvalidRequestError),
        ("bad_template", InvalidRequestError),
        ("line_too_long", InvalidRequestError),
        ("reply_too_long", InvalidRequestError),
        ("prompt_too_long", PromptTooLongError),
        ("overloaded", OverloadedError),
        ("shutting_down", OverloadedError),
        ("out_of_memory", ModelUnavailableError),
        ("internal", HearthError),
        ("duplicate_id", HearthError),
    ],
)
def test_failure_codes_become_errors(code: FailureCode, kind: type[HearthError]) -> None:
    error = request_failure(Failed("a", code, "why", details={"tokens": 9, "limit": 8}))
    assert type(error) is kind
    assert "why" in error.message
    assert error.details == {"tokens": 9, "limit": 8}
    assert (error.retry_after is not None) == (kind is OverloadedError)


def test_the_field_at_fault_is_named() -> None:
    assert request_failure(Failed("a", "bad_grammar", "x")).param == "grammar"
    assert request_failure(Failed("a", "bad_grammar", "x", details={"field": "tools"})).param == "tools"
    schema = Failed("a", "bad_grammar", "x", details={"field": "json_schema"})
    error = request_failure(schema, {"json_schema": "response_format"})
    assert (error.param, error.message) == ("response_format", "`response_format`: x")


def test_a_broken_call_may_be_tried_again() -> None:
    error = request_failure(Failed("a", "bad_tool_call", "it broke off", retriable=True))
    assert (error.status, error.code, error.retry_after) == (503, "bad_tool_call", 1)
    assert "it broke off" in error.message


def test_a_retriable_failure_is_an_error_with_a_retry_time() -> None:
    assert request_failure(Failed("a", "internal", "x", retriable=True)).retry_after == 1
    assert request_failure(Failed("a", "out_of_memory", "x", retriable=True)).retry_after == 1


@pytest.mark.parametrize("code", ["model_missing", "model_corrupt", "model_unsupported", "out_of_memory"])
def test_each_load_failure_names_a_remedy_and_is_not_retriable(code: FailureCode) -> None:
    error = load_failure(Failed(None, code, "bad magic"))
    assert error.code == code
    assert "bad magic" in error.message
    assert "hearth " in error.message
    assert error.retry_after is None


def test_exits_in_words() -> None:
    assert describe_exit(3) == "ended with exit code 3"
    assert describe_exit(-11) == "was killed by SIGSEGV"
    assert describe_exit(-9) == "was killed by SIGKILL"
    assert "memory" in describe_exit(-9, out_of_memory=True)
    assert describe_exit(0) == "was ended by another program"
    assert describe_exit(-200) == "was killed by signal 200"


@pytest.mark.parametrize(
    ("code", "out_of_memory", "kind"),
    [
        (0, False, "killed"),
        (-signal.SIGTERM, False, "killed"),
        (-signal.SIGKILL, False, "killed"),
        (-signal.SIGTERM, True, "killed"),
        (-signal.SIGKILL, True, "crashed"),
        (-signal.SIGSEGV, False, "crashed"),
        (-signal.SIGABRT, False, "crashed"),
        (1, False, "crashed"),
    ],
)
def test_who_ended_the_child(code: int, out_of_memory: bool, kind: str) -> None:
    ending = died(code, "its words", out_of_memory=out_of_memory)
    assert ending.kind == kind
    assert "its words" in ending.error.message
    assert ending.error.retry_after is not None


def test_a_child_that_was_ready_before_it_crashed_reopens_soon() -> None:
    clock = Clock()
    breaker = broken(clock)
    clock.now += 30
    breaker.crashed("killed", was_ready=True)
    assert breaker.retry_after() == 30
