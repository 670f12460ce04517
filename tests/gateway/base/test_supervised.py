"""A supervised task outlives every way in which its work can end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.base import supervised
from gateway.base.errors import HearthError
from gateway.base.supervised import Supervised, Supervision, TaskHealth
from tests.waiting import until

Start = Callable[..., Supervised]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """Starts tasks that are closed at the end."""
    supervision, running = Supervision(), []

    def begin(work: Callable[[], Coroutine[Any, Any, None]], **options: Any) -> Supervised:
        running.append(supervision.start("work", work, **options))
        return running[-1]

    yield begin
    for each in running:
        await each.close()


async def fail() -> None:
    raise KeyError("x")


async def run_out_of_disk() -> None:
    raise HearthError("no space left")


async def end() -> None:
    pass


async def wait_for_what_is_cancelled() -> None:
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    gone.cancel()
    await gone


@pytest.mark.parametrize(
    ("work", "problem"),
    [
        (fail, "an internal error (KeyError); the server's log has it"),
        (run_out_of_disk, "no space left"),
        (end, "an internal error (RuntimeError); the server's log has it"),
        (wait_for_what_is_cancelled, "an internal error (RuntimeError); the server's log has it"),
    ],
)
async def test_however_it_ends_it_begins_again(
    start: Start, work: Callable[[], Coroutine[Any, Any, None]], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervised, "_FIRST_WAIT_SECONDS", 0.01)
    endings = [work, work]

    async def later() -> None:
        await (endings.pop()() if endings else asyncio.Event().wait())

    with capture_logs() as logs:
        task = start(later)
        assert task.health() == TaskHealth("work", "running", 0, None)
        await until(lambda: not endings and task.state == "running")
    assert task.health() == TaskHealth("work", "running", 2, problem)
    known = work is run_out_of_disk
    assert [(each["log_level"], each["task"], "exc_info" in each) for each in logs] == [
        ("warning" if known else "error", "work", not known)
    ] * 2
    await task.close()
    assert task.state == "stopped"


async def test_failures_in_a_row_wait_longer_and_longer(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    real, skew, lasting = loop.time, 0.0, 0.0
    asked: float | None = None
    monkeypatch.setattr(loop, "time", lambda: real() + skew)

    async def work() -> None:
        nonlocal skew
        skew += lasting
        raise HearthError("no model", retry_after=asked)

    with capture_logs() as logs:
        start(work)
        waits: list[float] = []
        for _ in range(10):
            await until(lambda: len(logs) > len(waits))
            waits.append(logs[-1]["seconds"])
            asked = 90.0 if len(waits) == 8 else None
            lasting = 60.0 if len(waits) == 9 else 0.0
            skew += waits[-1]  # the wait is over
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60, 90, 1], "before the last failure it had run for a minute"


async def test_it_waits_before_it_begins_again(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "_FIRST_WAIT_SECONDS", 60.0)
    task = start(fail)
    await until(lambda: task.restarts == 1)
    assert task.state == "restarting"
    await task.close()
    assert (task.state, task.restarts) == ("stopped", 1)
