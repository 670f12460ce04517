"""Positions and estimated waits of queued requests."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.batching.estimate import waits
from model_host.batching.request import SequenceState
from tests.model_host.conftest import StartHost
from tests.model_host.fakes import generation


def sequence(prompt: int, answer: int) -> SequenceState:
    return generation("x", "interactive", [1] * prompt, answer=answer)


SIZES = st.lists(st.tuples(st.integers(1, 500), st.integers(1, 500)), max_size=8)


@given(SIZES, SIZES)
def test_waits_grow_along_the_queue(running: list[tuple[int, int]], waiting: list[tuple[int, int]]) -> None:
    found = waits([sequence(*s) for s in running], [sequence(*s) for s in waiting], 200.0, 100.0, 10.0)
    assert len(found) == len(waiting) + 1
    known = [wait for wait in found if wait is not None]
    assert len(known) == len(found)
    assert all(wait >= 0 for wait in known)
    if running:
        assert known == sorted(known)


def test_an_estimate_is_the_work_ahead() -> None:
    running = [sequence(100, 500) for _ in range(2)]  # a second of prefill and five of decode each
    assert waits(running, [], 50.0, 100.0, 10.0) == [pytest.approx(6.0)]
    assert waits(running, [], 50.0, 0.0, 10.0) == [None]
    assert waits([], [], 50.0, 100.0, 10.0) == [0.0]


def test_positions_count_down(start_host: StartHost) -> None:
    host = start_host("--parallel", "1", "--max-waiting", "3")
    host.generate("warm", "hello", max_tokens=8, ignore_eos=True)
    host.end("warm")
    host.generate("r0", "number 0", max_tokens=8000, ignore_eos=True)
    host.first("r0", "delta")
    for number in range(1, 4):
        host.generate(f"r{number}", f"number {number}", max_tokens=20, ignore_eos=True)
    host.first("r3", "queued")
    host.send(op="cancel", id="c", target="r0")
    for number in range(4):
        assert host.end(f"r{number}")["event"] == "finished"
    told = [[e["position"] for e in host.events[f"r{n}"] if e["event"] == "queued"] for n in range(4)]
    assert told[:2] == [[], [1]]
    assert told[3] == [3, 2, 1]
    assert all(host.first(f"r{n}", "queued")["wait_seconds"] >= 0 for n in (1, 2, 3))
    kinds = [e["event"] for e in host.events["r3"]]
    assert kinds.index("started") > max(i for i, kind in enumerate(kinds) if kind == "queued")


def test_who_finds_the_queue_full_is_told_when_to_come_back(start_host: StartHost) -> None:
    host = start_host("--parallel", "1", "--max-waiting", "1")
    host.generate("warm", "hello", max_tokens=8, ignore_eos=True)
    host.end("warm")
    host.generate("busy", "number 0", max_tokens=8000, ignore_eos=True)
    host.first("busy", "delta")
    names = [f"r{number}" for number in range(5)]
    for name in names:
        host.generate(name, name, max_tokens=8)

    def refused() -> list[dict[str, Any]]:
        return [event for name in names for event in host.events[name] if event["event"] == "failed"]

    host.wait(lambda: len(refused()) == 4)
    assert {event["code"] for event in refused()} == {"overloaded"}
    host.send(op="stats", id="s")
    assert host.end("s")["wait_seconds"] > 0
