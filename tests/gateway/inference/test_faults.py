"""A host that crashes, hangs, talks nonsense or does not listen: every request ends, and no process is left."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sys
import time
from contextlib import aclosing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.base.errors import HearthError, ModelUnavailableError
from gateway.config.settings import ModelSettings
from gateway.inference.host import HostInference
from gateway.inference.interface import GenerationEvent, LoadProgress
from gateway.inference.process.breaker import Breaker
from gateway.inference.process.supervisor import RESTART_SECONDS
from gateway.models.catalog import ResolvedModel
from model_host.protocol import Finished
from tests.end_to_end.server import alive
from tests.gateway.inference.helpers import (
    FAKE_HOST,
    MakeHost,
    call,
    collect,
    first_delta,
    own_children,
)
from tests.waiting import PATIENCE, eventually, until


def patient() -> Breaker:
    """A breaker that stays out of the way of tests about something else."""
    return Breaker(limit=10_000)


async def outcome(host: HostInference, max_tokens: int = 100_000) -> GenerationEvent | HearthError:
    """How one request ends."""
    try:
        return (await collect(host, call(max_tokens=max_tokens)))[-1]
    except HearthError as error:
        return error


def kill(host: HostInference, number: signal.Signals = signal.SIGKILL) -> int:
    pid = host.health().pid
    assert pid is not None
    os.kill(pid, number)
    return pid


def retriable(end: object) -> bool:
    return isinstance(end, ModelUnavailableError) and end.retry_after is not None


# -------------------------------------------------------------------------------------------- crashes


async def test_a_killed_host_ends_every_open_request(make_host: MakeHost) -> None:
    host = make_host()
    tasks = [asyncio.create_task(outcome(host)) for _ in range(8)]
    await until(lambda: host.health().state == "ready")
    await asyncio.sleep(0.1)
    kill(host)
    ends = await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    assert all(map(retriable, ends))
    assert "SIGKILL" in str(ends[0])
    assert "fake host: loading" in str(ends[0])
    await until(lambda: not own_children())
    assert host.health().restarts == 1
    assert isinstance(await outcome(host, 3), Finished)


async def test_a_crash_in_the_middle_of_a_stream(make_host: MakeHost) -> None:
    host = make_host("--crash-after", 3)
    end = await outcome(host)
    assert retriable(end)
    assert "SIGSEGV" in str(end)


async def test_a_host_that_gives_up_is_replaced_and_its_last_words_are_told(make_host: MakeHost) -> None:
    """As the host does when one of its threads has died."""
    host = make_host("--exit-after", 20, "--delta-seconds", 0.01)
    failing = asyncio.create_task(outcome(host))
    await until(lambda: host.health().state == "ready")
    end = await failing
    assert retriable(end)
    assert "ended with exit code 1; its last line was: fake host: the preparer thread failed" in str(end)
    assert isinstance(await outcome(host, 3), Finished)
    assert host.health().restarts == 1


async def test_a_crash_is_seen_even_if_somebody_else_holds_the_output_open(
    make_host: MakeHost, tmp_path: Path
) -> None:
    host = make_host("--leave-open", tmp_path / "outside", "--crash-after", 1)
    try:
        assert retriable(await outcome(host))
    finally:
        outside = int((tmp_path / "outside").read_text())
        assert alive(outside), "nobody held the output open"
        os.kill(outside, signal.SIGKILL)


async def test_a_host_that_closes_its_output_is_ended(make_host: MakeHost) -> None:
    host = make_host("--close-output", "--stubborn")
    end = await outcome(host)
    assert retriable(end)
    assert "closed its output" in str(end)
    await until(lambda: not own_children())


async def test_kills_at_any_time_cost_only_what_was_open(make_host: MakeHost) -> None:
    """Every request ends; the breaker, as it is by default, takes no offence at somebody else's kills."""
    host = make_host("--load-seconds", 0.05)
    seeded = random.Random(7)
    over = asyncio.Event()
    ends: list[GenerationEvent | HearthError] = []

    async def client() -> None:
        while not over.is_set():
            ends.append(await outcome(host, seeded.choice([2, 20, 200])))

    clients = [asyncio.create_task(client()) for _ in range(8)]
    try:
        for _ in range(20):
            await until(lambda: host.health().pid is not None)
            await asyncio.sleep(seeded.uniform(0, 0.3))
            await until(lambda: host.health().pid is not None)
            kill(host)
    finally:
        over.set()
    await asyncio.wait_for(asyncio.gather(*clients), PATIENCE)
    assert all(isinstance(end, Finished) or retriable(end) for end in ends)
    assert 10 <= host.health().restarts <= 20, "a kill may meet a host that is dead already"
    assert isinstance(await outcome(host, 3), Finished)


async def test_requests_wait_while_a_loading_host_is_killed(make_host: MakeHost, tmp_path: Path) -> None:
    host = make_host("--load-seconds", 0.4, "--starts", tmp_path / "starts")
    tasks = [asyncio.create_task(collect(host, call(max_tokens=3))) for _ in range(8)]
    killed: set[int] = set()
    for number in (signal.SIGKILL, signal.SIGTERM) * 3:
        await until(lambda: (host.health().load_progress or 0) > 0 and host.health().pid not in killed)
        killed.add(kill(host, number))
    runs = await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
    assert all(isinstance(run[-1], Finished) for run in runs)
    assert host.health().restarts == 6
    assert len((tmp_path / "starts").read_text().split()) == 7
    steps = [event.fraction for event in runs[0] if isinstance(event, LoadProgress)]
    assert steps.count(0.0) >= 7, "each start is told from its beginning"


async def test_a_child_that_is_killed_at_once_again_and_again_stays_bounded(
    make_host: MakeHost, tmp_path: Path
) -> None:
    host = make_host("--killed-at-start", "--starts", tmp_path / "starts", start_timeout_seconds=1.2)
    begun = time.monotonic()
    end = await asyncio.wait_for(outcome(host), PATIENCE)
    assert retriable(end)
    assert "SIGKILL" in str(end)
    seconds = time.monotonic() - begun
    assert seconds >= 1.2, "a request waits as long as a start may take"
    assert len((tmp_path / "starts").read_text().split()) <= seconds / RESTART_SECONDS + 1


async def test_a_child_that_the_kernel_kills_for_memory_opens_the_breaker(
    make_host: MakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = itertools.count()
    monkeypatch.setattr("gateway.inference.process.process.oom_kills", lambda: next(kills))
    host = make_host("--killed-at-start", "--starts", tmp_path / "starts")
    end = await asyncio.wait_for(outcome(host), PATIENCE)
    assert isinstance(end, ModelUnavailableError)
    assert end.code == "model_broken"
    assert "memory ran out" in str(end)
    assert len((tmp_path / "starts").read_text().split()) == 3


async def test_repeated_crashes_fail_fast_and_then_recover(make_host: MakeHost, tmp_path: Path) -> None:
    flag, log = tmp_path / "crash", tmp_path / "starts"
    flag.touch()
    host = make_host("--crash-if", flag, "--starts", log, breaker=Breaker(cooldown=1.0))
    for _ in range(2):  # the first request meets three crashes, the second none
        with pytest.raises(ModelUnavailableError, match=r"crashed 3 times.*exit code 3.*giving up") as caught:
            await host.warm()
        assert caught.value.code == "model_broken"
        assert caught.value.retry_after is not None
        assert len(log.read_text().split()) == 3
    with pytest.raises(ModelUnavailableError, match="crashed 3 times"):
        await host.check()
    flag.unlink()
    await until(lambda: host.health().state == "stopped")
    await host.check()
    await host.warm()
    assert host.health().state == "ready"


# -------------------------------------------------------------------------------------- no obedience


async def test_a_cancelled_request_that_does_not_end_costs_the_host_its_life(make_host: MakeHost) -> None:
    host = make_host("--ignore-cancel", stop_grace_seconds=1.0)
    other = asyncio.create_task(outcome(host))
    async with aclosing(host.generate(call(max_tokens=100_000))) as events:
        await first_delta(events)
    assert host.health().open_requests == 2, "closing must not wait for the host"
    end = await asyncio.wait_for(other, PATIENCE)
    assert retriable(end)
    assert "did not stop within 1 s" in str(end)
    await until(lambda: host.health().open_requests == 0)


async def test_a_cancelled_request_that_ends_by_itself_is_no_reason_to_kill(make_host: MakeHost) -> None:
    host = make_host("--ignore-cancel", "--delta-seconds", 0.01, stop_grace_seconds=1.0)
    async with aclosing(host.generate(call(max_tokens=4))) as events:
        await first_delta(events)
        pid = host.health().pid
    await until(lambda: host.health().open_requests == 0)
    await asyncio.sleep(1.1)
    assert (host.health().pid, host.health().restarts) == (pid, 0)


async def test_a_stalled_host_can_be_cancelled_and_closed(make_host: MakeHost) -> None:
    host = make_host("--stall", "--ignore-cancel", stop_grace_seconds=0.4)
    await host.warm()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await collect(host)
    await until(lambda: host.health().restarts == 1)
    await until(lambda: not own_children())


async def test_asking_a_stalled_host_for_counters_gives_up(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.inference.process.link.STATS_SECONDS", 0.1)
    host = make_host("--stall")
    await host.warm()
    await asyncio.wait_for(asyncio.gather(host.refresh_stats(), host.refresh_stats()), PATIENCE)
    assert host.health().stats == {}
    assert host.health().state == "ready"


async def test_counters_are_asked_for_again_when_an_answer_is_lost(
    make_host: MakeHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.inference.process.link.STATS_SECONDS", 0.2)
    host = make_host("--lose-stats", 1)
    await host.warm()
    await host.refresh_stats()
    assert host.health().stats == {}
    await host.refresh_stats()
    assert host.health().stats["kv_size"] == 2048


# -------------------------------------------------------------------------------------------- nonsense


async def test_a_few_bad_lines_are_survived(make_host: MakeHost, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(
        b'\x00\xff\n\n[]\n{"event":"delta","id":"nobody","text":"x","tokens":1}\n{"event":"unknown"}\n'
    )
    host = make_host("--garbage", garbage)
    assert isinstance(await outcome(host, 3), Finished)
    assert host.health().restarts == 0


async def test_many_bad_lines_end_the_host(make_host: MakeHost, tmp_path: Path) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"nonsense\n" * 100)
    host = make_host("--garbage", garbage)
    end = await outcome(host)
    assert retriable(end)
    assert "malformed lines" in str(end)
    await until(lambda: host.health().state == "stopped")
    assert host.health().restarts == 1


async def test_an_oversized_line_ends_the_host(make_host: MakeHost) -> None:
    host = make_host("--oversized")
    end = await outcome(host)
    assert retriable(end)
    assert "8388608 bytes" in str(end)
    await until(lambda: host.health().state == "stopped")
    assert host.health().restarts == 1


@pytest.mark.parametrize("tag", ["started", "delta", "finished"])
async def test_a_mangled_event_fails_its_request_instead_of_losing_it(make_host: MakeHost, tag: str) -> None:
    host = make_host("--mangle", tag)
    end = await outcome(host, 3)
    assert retriable(end)
    assert "malformed reply" in str(end)
    await until(lambda: host.health().open_requests == 0)
    assert host.health().restarts == 0


LINES = st.one_of(
    st.binary(max_size=60),
    st.sampled_from(
        [
            b'{"event":"finished","id":"r1:1"}',
            b'{"event":"loading","progress":0.5}',
            b'{"event":"loading","progress":7}',
            b'{"event":"ready"}',
            b'{"event":"closing","id":"gateway:1"}',
            b'{"event":"failed","id":null,"code":"internal","message":"m"}',
            b'{"event":"cancelled","id":"gateway:1","target":"r1:1","found":false}',
            b"[" * 5000,
        ]
    ),
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(LINES, max_size=40))
async def test_whatever_a_host_says_every_request_ends(
    make_host: MakeHost, tmp_path: Path, lines: list[bytes]
) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_bytes(b"".join(line + b"\n" for line in lines))
    host = make_host("--garbage", garbage, breaker=patient())
    ends = await asyncio.wait_for(asyncio.gather(*(outcome(host, 3) for _ in range(4))), PATIENCE)
    assert all(isinstance(end, Finished | HearthError) for end in ends)
    await until(lambda: host.health().open_requests == 0)
    await host.close()


def test_a_gateway_that_stops_without_closing_leaves_no_child(model: ResolvedModel) -> None:
    """An event loop that is torn down takes the child with it."""

    async def main() -> int:
        settings = ModelSettings(memory_headroom_bytes=0)
        host = HostInference(model, settings, command=[sys.executable, str(FAKE_HOST)])
        await host.warm()
        pid = host.health().pid
        assert pid is not None
        return pid

    asyncio.run(main())
    eventually(lambda: not own_children(), "the child was left")


def _said(seeded: random.Random, number: int) -> bytes:
    """A line a host might say: mostly well-formed events of nobody's request, some of them damaged."""
    line = (
        seeded.choice(
            [
                '{"event":"delta","id":"x%d","text":"a b","tokens":1}',
                '{"event":"finished","id":"r%d:1","reason":"stop"}',
                '{"event":"prefill","id":"x%d","done":1,"total":2}',
                '{"event":"counted","id":"x%d","counts":[1,2]}',
                '{"event":"failed","id":null,"code":"internal","message":"%d"}',
            ]
        )
        % number
    ).encode()
    if seeded.random() < 0.02:
        cut = seeded.randrange(len(line))
        line = line[:cut] + bytes([seeded.randrange(1, 256)]) * seeded.randrange(3) + line[cut + 1 :]
    return line.replace(b"\n", b"")


@pytest.mark.soak
async def test_20_000_lines_from_hosts(make_host: MakeHost, tmp_path: Path) -> None:
    """40 requests, each with 500 random lines in its answer; hosts that say too much nonsense are replaced."""
    seeded = random.Random(9)
    garbage = tmp_path / "garbage"
    host = make_host("--garbage", garbage, breaker=patient())
    for request in range(40):
        garbage.write_bytes(b"".join(_said(seeded, request * 500 + i) + b"\n" for i in range(500)))
        end = await asyncio.wait_for(outcome(host, 3), PATIENCE)
        assert isinstance(end, Finished | HearthError)
    await until(lambda: host.health().open_requests == 0)
    garbage.write_bytes(b"")
    assert isinstance(await asyncio.wait_for(outcome(host, 3), PATIENCE), Finished)
