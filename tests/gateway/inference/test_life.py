"""Start, idle reaping, stop: what the supervisor does with a child that behaves, or only refuses to go."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing
from pathlib import Path

import pytest

from gateway.base.errors import ModelUnavailableError
from gateway.inference.host import HostInference
from gateway.inference.interface import HostState
from gateway.inference.process.breaker import Breaker
from model_host.protocol import Finished
from tests.end_to_end.server import alive
from tests.gateway.inference.helpers import MakeHost, call, collect, own_children
from tests.waiting import PATIENCE, until


def state(host: HostInference) -> HostState:
    return host.health().state


def starts(path: Path) -> int:
    return len(path.read_text().split())


# ----------------------------------------------------------------------------------------------- start


async def test_concurrent_first_requests_share_one_start(make_host: MakeHost, tmp_path: Path) -> None:
    host = make_host("--starts", tmp_path / "starts", "--load-seconds", 0.2)
    runs = await asyncio.gather(*(collect(host) for _ in range(8)), host.model_info(), host.count(["a"]))
    assert len(runs) == 10
    assert starts(tmp_path / "starts") == 1


async def test_a_start_goes_on_when_its_callers_leave(make_host: MakeHost, tmp_path: Path) -> None:
    host = make_host("--load-seconds", 0.3, "--starts", tmp_path / "starts")
    tasks = [asyncio.create_task(collect(host)) for _ in range(3)]
    await until(lambda: host.health().pid is not None)
    async with aclosing(host.generate(call())) as events:
        await anext(events)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert (state(host), host.health().open_requests) == ("starting", 0)
    await until(lambda: state(host) == "ready")
    assert isinstance((await collect(host))[-1], Finished)
    assert starts(tmp_path / "starts") == 1


async def test_idle_time_begins_when_an_abandoned_start_is_ready(make_host: MakeHost) -> None:
    host = make_host("--load-seconds", 0.6, idle_seconds=0.4)
    task = asyncio.create_task(collect(host))
    await until(lambda: host.health().pid is not None)
    task.cancel()
    await until(lambda: state(host) == "ready")
    ready = time.monotonic()
    await until(lambda: state(host) == "stopped")
    assert time.monotonic() - ready > 0.35


async def test_unload_ends_a_start_once_nobody_waits_for_it(make_host: MakeHost) -> None:
    host = make_host("--hang-on-load")
    task = asyncio.create_task(collect(host))
    await until(lambda: host.health().pid is not None)
    unloading = asyncio.create_task(host.unload())
    await asyncio.sleep(0.1)
    assert state(host) == "starting", "somebody waits for it"
    task.cancel()
    await asyncio.wait_for(unloading, PATIENCE)
    assert (state(host), host.health().restarts) == ("stopped", 0)
    assert not own_children()


async def test_a_start_that_takes_too_long_fails(make_host: MakeHost) -> None:
    host = make_host("--hang-on-load", start_timeout_seconds=2.0)
    with pytest.raises(ModelUnavailableError, match=r"not ready within 2 s.*loading") as caught:
        await collect(host)
    assert caught.value.retry_after is not None
    await until(lambda: state(host) == "stopped")
    assert host.health().restarts == 1
    assert "within 2 s" in (host.health().problem or "")


async def test_another_protocol_version_is_refused(make_host: MakeHost, tmp_path: Path) -> None:
    host = make_host("--protocol", 99, "--starts", tmp_path / "starts")
    for _ in range(2):
        with pytest.raises(ModelUnavailableError, match="protocol 99"):
            await host.warm()
    assert starts(tmp_path / "starts") == 1


# ------------------------------------------------------------------------------------------ keep-alive


@pytest.mark.parametrize(("setting", "keep_alive"), [(0.3, None), (60.0, 0.3)])
async def test_an_idle_host_goes_after_its_time(
    make_host: MakeHost, setting: float, keep_alive: float | None
) -> None:
    host = make_host(idle_seconds=setting)
    await collect(host, call(keep_alive=keep_alive))
    ended = time.monotonic()
    left = host.health().idle_seconds_left
    assert left is None or left <= 0.3
    await until(lambda: state(host) == "stopped")
    assert time.monotonic() - ended >= 0.28
    assert host.health().restarts == 0
    assert host.health().problem is None
    assert isinstance((await collect(host))[-1], Finished)


async def test_keep_alive_zero_unloads_right_away(make_host: MakeHost) -> None:
    host = make_host()
    await collect(host, call(keep_alive=0.0))
    await until(lambda: state(host) == "stopped")


@pytest.mark.parametrize(("setting", "keep_alive"), [(-1.0, None), (0.05, -1.0)])
async def test_a_negative_time_keeps_the_host(
    make_host: MakeHost, setting: float, keep_alive: float | None
) -> None:
    host = make_host(idle_seconds=setting)
    await host.count(["a"], keep_alive=keep_alive)
    await asyncio.sleep(0.4)
    assert state(host) == "ready"
    assert host.health().idle_seconds_left is None


async def test_a_request_in_flight_is_never_reaped(make_host: MakeHost) -> None:
    host = make_host("--delta-seconds", 0.02, idle_seconds=0.1)
    events = await collect(host, call(max_tokens=30))
    assert isinstance(events[-1], Finished)
    assert host.health().state == "ready"


async def test_the_request_that_ends_last_decides(make_host: MakeHost) -> None:
    host = make_host("--delta-seconds", 0.02)
    await asyncio.gather(
        collect(host, call(max_tokens=3, keep_alive=0.0)), collect(host, call(max_tokens=12, keep_alive=50.0))
    )
    left = host.health().idle_seconds_left
    assert left is not None
    assert 45 < left <= 50


async def test_looking_at_the_host_neither_wakes_it_nor_counts_as_use(
    make_host: MakeHost, tmp_path: Path
) -> None:
    host = make_host("--starts", tmp_path / "starts", idle_seconds=0.5)
    host.health()
    await host.refresh_stats()
    assert not (tmp_path / "starts").exists()
    await host.warm()

    async def watch() -> None:
        while state(host) != "stopped":
            await host.refresh_stats()
            await asyncio.sleep(0.01)

    begun = time.monotonic()
    await asyncio.wait_for(watch(), PATIENCE)
    assert time.monotonic() - begun > 0.45
    assert starts(tmp_path / "starts") == 1


# ------------------------------------------------------------------------------------------------ stop


async def test_unload_waits_for_open_requests(make_host: MakeHost) -> None:
    host = make_host("--delta-seconds", 0.01, idle_seconds=-1.0)
    await host.unload()
    await host.warm()
    running = asyncio.create_task(collect(host, call(max_tokens=30)))
    await until(lambda: host.health().open_requests == 1)
    await host.unload()
    assert running.done()
    assert isinstance((await running)[-1], Finished)
    assert state(host) == "stopped"
    await host.warm()
    assert state(host) == "ready"


async def test_close_fails_open_requests_and_refuses_later_ones(make_host: MakeHost) -> None:
    host = make_host()
    running = asyncio.create_task(collect(host, call(max_tokens=100_000)))
    await until(lambda: state(host) == "ready")
    await host.close()
    with pytest.raises(ModelUnavailableError, match="stopped") as caught:
        await running
    assert caught.value.retry_after is not None
    with pytest.raises(ModelUnavailableError, match="shutting down"):
        await host.warm()
    assert not own_children()


async def test_close_during_a_start_fails_the_waiters(make_host: MakeHost) -> None:
    host = make_host("--hang-on-load", "--stubborn", stop_grace_seconds=3600.0)
    waiting = asyncio.create_task(collect(host))
    await until(lambda: host.health().pid is not None)
    await asyncio.wait_for(host.close(), PATIENCE)  # what has no model yet gets no grace
    with pytest.raises(ModelUnavailableError, match="stopped"):
        await waiting


async def test_a_stubborn_host_is_killed_after_the_grace_time(make_host: MakeHost) -> None:
    host = make_host("--stubborn", stop_grace_seconds=0.6)
    await host.warm()
    pid = host.health().pid
    assert pid is not None
    begun = time.monotonic()
    stopping = asyncio.create_task(host.unload())
    await until(lambda: state(host) == "stopping")
    next_one = asyncio.create_task(host.model_info())
    await stopping
    assert time.monotonic() - begun > 0.55
    assert not alive(pid)
    assert (await next_one).name == "fake"
    assert host.health().pid != pid


async def test_the_whole_group_goes_with_the_host(make_host: MakeHost, tmp_path: Path) -> None:
    host = make_host("--grandchild", tmp_path / "grandchild")
    await host.warm()
    grandchild = int((tmp_path / "grandchild").read_text())
    assert alive(grandchild)
    await host.unload()
    await until(lambda: not alive(grandchild))


async def test_health_in_every_state(make_host: MakeHost, tmp_path: Path) -> None:
    flag = tmp_path / "crash"
    switches = ("--load-seconds", 0.2, "--crash-if", flag, "--stubborn")
    host = make_host(*switches, stop_grace_seconds=0.4, breaker=Breaker(limit=1, cooldown=0.6))
    health = host.health()
    assert (health.state, health.pid, health.model, health.uptime_seconds) == ("stopped", None, None, None)
    warming = asyncio.create_task(host.warm())
    await until(lambda: (host.health().load_progress or 0) > 0)
    health = host.health()
    assert (health.state, health.model, health.idle_seconds_left, health.open_requests) == (
        "starting",
        None,
        None,
        1,
    )
    assert health.pid is not None
    await warming
    await host.refresh_stats()
    health = host.health()
    assert (health.state, health.load_progress, health.open_requests) == ("ready", None, 0)
    assert health.rss_bytes is not None
    assert health.rss_bytes > 2**20
    assert health.uptime_seconds is not None
    assert health.model is not None
    assert health.stats["kv_size"] == 2048
    unloading = asyncio.create_task(host.unload())
    await until(lambda: state(host) == "stopping")
    assert host.health().pid == health.pid
    await unloading
    flag.touch()
    with pytest.raises(ModelUnavailableError, match="giving up"):
        await host.warm()
    await until(lambda: state(host) == "broken")
    health = host.health()
    assert health.retry_after is not None
    assert "giving up" in (health.problem or "")
    await until(lambda: state(host) == "stopped")
    assert host.health().retry_after is None
