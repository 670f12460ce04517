"""A host that hangs is noticed, ended and replaced; one that is only slow is left alone."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from contextlib import aclosing

import pytest

from gateway.base.errors import ModelUnavailableError
from gateway.inference.host import HostInference
from gateway.inference.process.heartbeat import MISSED_BEATS
from model_host.protocol import Finished
from tests.gateway.inference.helpers import MakeHost, call, collect, first_delta, own_children
from tests.waiting import PATIENCE, until

BEAT = 0.1


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.inference.process.heartbeat.BEAT_SECONDS", BEAT)


def freeze(host: HostInference) -> int:
    pid = host.health().pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    return pid


async def test_a_stopped_host_fails_what_is_open_and_is_replaced(make_host: MakeHost) -> None:
    host = make_host()
    running = asyncio.create_task(collect(host, call(max_tokens=100_000)))
    await until(lambda: host.health().state == "ready")
    pid = freeze(host)
    with pytest.raises(
        ModelUnavailableError, match=f"did not answer for {MISSED_BEATS * BEAT:g} s"
    ) as caught:
        await asyncio.wait_for(running, PATIENCE)
    assert caught.value.retry_after is not None
    assert isinstance((await collect(host))[-1], Finished)
    assert host.health().pid != pid
    assert host.health().restarts == 1
    for _ in range(3):  # stopping hosts on purpose does not open the breaker
        freeze(host)
        await until(lambda: host.health().pid is None)
        await host.warm()


async def test_a_request_that_fills_the_pipe_of_a_stopped_host_ends_too(make_host: MakeHost) -> None:
    host = make_host()
    await host.warm()
    freeze(host)
    with pytest.raises(ModelUnavailableError, match="did not answer"):
        await asyncio.wait_for(host.count(["word " * 200_000]), PATIENCE)


async def test_an_idle_host_that_stops_is_noticed_and_told_of_meanwhile(make_host: MakeHost) -> None:
    host = make_host()
    await host.warm()
    await host.check()
    freeze(host)
    refused: list[str] = []

    async def watch() -> None:
        while host.health().pid is not None:
            try:
                await host.check()
            except ModelUnavailableError as error:
                refused.append(error.message)
            await asyncio.sleep(BEAT / 4)

    await asyncio.wait_for(watch(), PATIENCE)
    assert "has not answered for" in refused[0]
    assert host.health().problem is not None
    await host.check()  # the next request starts another one


async def test_requests_wait_through_a_load_that_hangs(make_host: MakeHost) -> None:
    host = make_host("--load-seconds", 1.0)
    waiting = asyncio.create_task(collect(host))
    await until(lambda: (host.health().load_progress or 0) > 0)
    freeze(host)
    assert isinstance((await asyncio.wait_for(waiting, PATIENCE))[-1], Finished)
    assert host.health().restarts == 1


async def test_a_child_that_stops_before_its_first_word_is_noticed(make_host: MakeHost) -> None:
    host = make_host("--mute", "--load-seconds", 600, start_timeout_seconds=600.0)
    waiting = asyncio.create_task(collect(host))
    await until(lambda: host.health().restarts == 1)
    assert "did not answer" in (host.health().problem or "")
    await host.close()
    with pytest.raises(ModelUnavailableError):
        await waiting


async def test_a_step_that_never_ends_is_noticed(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.inference.process.heartbeat.STUCK_SECONDS", 0.6)
    host = make_host("--stuck", "--stall")
    with pytest.raises(ModelUnavailableError, match="made no progress with a step or a prompt"):
        await asyncio.wait_for(collect(host), PATIENCE)
    await until(lambda: not own_children())


async def test_a_long_step_and_a_slow_load_are_left_alone(make_host: MakeHost) -> None:
    host = make_host("--stuck", "--load-seconds", 2 * MISSED_BEATS * BEAT)
    await host.warm()
    await asyncio.sleep(2 * MISSED_BEATS * BEAT)
    assert (host.health().state, host.health().restarts) == ("ready", 0)


async def test_a_client_that_leaves_during_a_long_step_does_not_cost_the_host_its_life(
    make_host: MakeHost,
) -> None:
    host = make_host("--stuck", "--ignore-cancel", stop_grace_seconds=0.4)
    await host.warm()
    await asyncio.sleep(5 * BEAT)  # the step is long, and told of
    async with aclosing(host.generate(call(max_tokens=100_000))) as events:
        await first_delta(events)
    await asyncio.sleep(1.2)
    assert (host.health().restarts, host.health().open_requests) == (0, 1)


async def test_a_gateway_that_stood_still_itself_does_not_blame_the_host(make_host: MakeHost) -> None:
    host = make_host()
    await host.warm()
    for _ in range(3):
        await asyncio.sleep(BEAT)
        time.sleep(3 * MISSED_BEATS * BEAT)  # noqa: ASYNC251 - the event loop stands still
    assert isinstance((await collect(host))[-1], Finished)
    assert host.health().restarts == 0


async def test_signs_of_life_are_no_use(make_host: MakeHost) -> None:
    host = make_host(idle_seconds=5 * BEAT)
    await host.warm()
    await until(lambda: host.health().state == "stopped")
    assert host.health().restarts == 0
