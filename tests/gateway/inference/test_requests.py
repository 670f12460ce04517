"""Requests through a healthy host."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from gateway.base.errors import HearthError, InvalidRequestError, OverloadedError, PromptTooLongError
from gateway.inference.interface import GenerateCall, Inference, LoadProgress
from model_host.protocol import MAX_LINE_BYTES, Delta, Finished, Message, Started
from tests.gateway.inference.helpers import MakeHost, call, collect, first_delta
from tests.waiting import until


async def test_the_first_request_starts_the_host_and_shows_progress(make_host: MakeHost) -> None:
    host = make_host()
    events = await collect(host)
    kinds = [type(event) for event in events]
    assert kinds[-7:] == [Started, *[Delta] * 5, Finished]
    assert all(kind is LoadProgress for kind in kinds[:-7])
    fractions = [event.fraction for event in events if isinstance(event, LoadProgress)]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    assert [type(event) for event in await collect(host)] == kinds[-7:]


async def test_events_reach_their_own_request(make_host: MakeHost) -> None:
    host = make_host()
    runs = await asyncio.gather(*(collect(host, call("same", max_tokens=n)) for n in range(1, 20)))
    for n, events in enumerate(runs, start=1):
        assert sum(isinstance(event, Delta) for event in events) == n
        assert len({event.id for event in events if not isinstance(event, LoadProgress)}) == 1
    assert host.health().open_requests == 0


async def test_a_long_or_odd_request_id_is_made_fit_for_the_wire(make_host: MakeHost) -> None:
    for request_id in ("x" * 128, "ü/ß", ""):
        finished = (await collect(make_host(), call(request_id)))[-1]
        assert isinstance(finished, Finished)
        assert len(finished.id) <= 128


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("prompt_too_long", PromptTooLongError),
        ("bad_grammar", InvalidRequestError),
        ("overloaded", OverloadedError),
    ],
)
async def test_a_failed_request_raises_and_leaves_the_host_alone(
    make_host: MakeHost, code: str, kind: type[HearthError]
) -> None:
    host = make_host("--fail-generate", code)
    with pytest.raises(kind) as caught:
        await collect(host)
    assert caught.value.details == {"tokens": 9, "limit": 8}
    assert host.health().state == "ready"


async def test_what_cannot_be_sent_does_not_start_a_host(make_host: MakeHost) -> None:
    host = make_host()
    for prompt in ("x" * MAX_LINE_BYTES, "\ud800"):
        with pytest.raises(InvalidRequestError):
            await collect(host, GenerateCall(id="a", prompt=prompt))
    assert host.health().state == "stopped"


async def test_closing_the_iterator_cancels(make_host: MakeHost) -> None:
    host = make_host("--delta-seconds", 0.01)
    async with aclosing(host.generate(call(max_tokens=100_000))) as events:
        await first_delta(events)
        pid = host.health().pid
    await until(lambda: host.health().open_requests == 0)
    await host.refresh_stats()
    assert host.health().running == 0
    assert host.health().pid == pid


async def test_cancelling_the_reading_task_cancels(make_host: MakeHost) -> None:
    host = make_host()
    await host.warm()
    task = asyncio.create_task(collect(host, call(max_tokens=100_000)))
    await until(lambda: host.health().open_requests == 1)
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: host.health().open_requests == 0)
    assert host.health().state == "ready"


async def test_a_large_request_waits_for_room_in_the_pipe(make_host: MakeHost) -> None:
    host = make_host()
    text = "word " * 500_000
    runs = await asyncio.gather(
        *(collect(host, GenerateCall(id="a", prompt=text, max_tokens=1)) for _ in range(4))
    )
    assert all(isinstance(events[-1], Finished) for events in runs)


async def test_counts_keep_order_and_are_cached(make_host: MakeHost) -> None:
    host = make_host()
    assert await host.count(["a b c", "", "a", "a b c"]) == [3, 0, 1, 3]
    assert await host.count(["a", "a b"]) == [1, 2]
    assert await host.count(["a", "a b", ""]) == [1, 2, 0]
    assert await host.count([]) == []
    await host.refresh_stats()
    assert host.health().stats["requests"] == 2
    assert await host.count_prompt([Message("user", "a b"), Message("assistant", "c")]) == 3


async def test_texts_of_more_than_one_line_are_counted(make_host: MakeHost) -> None:
    texts = [f"{n} " + "x " * 400_000 for n in range(14)]
    assert await make_host().count(texts) == [400_001] * 14
    with pytest.raises(InvalidRequestError):
        await make_host().count(["x" * MAX_LINE_BYTES])


async def test_the_model_is_described(make_host: MakeHost) -> None:
    served: Inference = make_host()
    info = await served.model_info()
    assert (info.name, info.n_ctx, info.n_ctx_train, info.fingerprint) == ("fake", 2048, 4096, "fake")
