"""Which server gets a request, and what becomes of those that fail."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, suppress

import pytest

from gateway.base.errors import ModelUnavailableError
from gateway.inference.interface import GenerateCall
from gateway.inference.upstream import replicas
from gateway.inference.upstream.connection import Connection, LostError
from model_host.protocol import Delta, Finished, Message, Started
from tests.gateway.inference.upstream.conftest import World
from tests.gateway.inference.upstream.fake import FakeServer, serving
from tests.gateway.inference.upstream.helpers import HELLO, chat, completed, events_of, text_in, until_ready
from tests.waiting import until


async def test_a_server_lost_in_the_middle_ends_its_stream_with_a_retriable_error(world: World) -> None:
    fake = await world.fake(drop_after=1)
    client = await world.gateway(fake)
    reply = await client.post("/v1/chat/completions", json=chat(stream=True))
    last = json.loads(reply.text.strip().split("data: ")[-2])
    assert last["error"]["code"] == "model_unavailable"
    assert "try again" in last["error"]["message"]
    assert len(fake.chats) == 1  # a client has seen text: it is not sent again
    fake.drop_after = None
    assert (await completed(client, chat()))["choices"][0]["message"]["content"] == "hello there friend"


async def test_a_request_waits_while_the_only_server_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicas, "_WAIT_SECONDS", 0.0)
    fake = await world.fake(drop_after=1)
    inference = world.inference(fake)
    await until_ready(inference, 1)
    asked = fake.lists
    fake.listing.clear()  # a cluster starts another replica in place of the one that was lost
    with pytest.raises(ModelUnavailableError):
        await events_of(inference, GenerateCall(id="x", messages=HELLO))
    fake.drop_after = None
    await until(lambda: fake.lists > asked)
    waiting = asyncio.create_task(events_of(inference, GenerateCall(id="x", messages=HELLO)))
    await asyncio.sleep(0)
    assert not waiting.done()
    fake.listing.set()
    assert text_in(await waiting) == "hello there friend"


async def test_a_kept_connection_that_the_server_has_closed_costs_no_request(stack: AsyncExitStack) -> None:
    connections = requests = ended = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the first request of a connection if there was one before it; close it at the next request."""
        nonlocal connections, requests, ended
        connections += 1
        with suppress(asyncio.IncompleteReadError):
            for answered in (connections > 1, False):
                await reader.readuntil(b"\r\n\r\n")
                requests += 1
                if answered:
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()
        await writer.wait_closed()
        ended += 1

    server = await stack.enter_async_context(await asyncio.start_server(serve, "127.0.0.1", 0))
    port = server.sockets[0].getsockname()[1]
    connection = Connection(f"http://127.0.0.1:{port}", "", 60.0)
    with pytest.raises(LostError):
        await connection.get("/v1/models")
    assert requests == 1  # its own connection: the server itself is broken
    assert [await connection.get("/v1/models") for _ in range(3)] == [{}, {}, {}]
    assert (connections, requests) == (4, 6)
    await connection.close()
    await until(lambda: ended == connections)


async def test_a_server_lost_before_the_first_token_costs_no_request(world: World) -> None:
    fakes = [await world.fake(drop_after=0), await world.fake()]
    inference = world.inference(*fakes)
    await until_ready(inference, 2)
    sent = 0
    while not fakes[0].chats:  # its turn comes: the order of servers differs by conversation
        sent += 1
        call = GenerateCall(id="x", messages=[Message("user", f"Hi {sent}")])
        assert text_in(await events_of(inference, call)) == "hello there friend"
    assert len(fakes[1].chats) == sent


@pytest.mark.parametrize(("status", "kind"), [(429, 503), (503, 503), (500, 503), (400, 400)])
async def test_refusals_keep_their_kind(world: World, status: int, kind: int) -> None:
    fake = await world.fake(status=status)
    client = await world.gateway(fake)
    reply = await client.post("/v1/chat/completions", json=chat())
    assert reply.status_code == kind
    assert "told to fail" in reply.json()["error"]["message"]
    assert ("retry-after" in reply.headers) == (kind == 503)


async def test_a_busy_server_is_replaced_by_another_one(world: World) -> None:
    fakes = [await world.fake(status=429), await world.fake()]
    inference = world.inference(*fakes)
    await until_ready(inference, 2)
    sent = 0
    while not fakes[0].chats:
        sent += 1
        call = GenerateCall(id="x", messages=[Message("user", f"Hi {sent}")])
        assert text_in(await events_of(inference, call)) == "hello there friend"
    assert [each.failures for each in inference.health().replicas] == [0, 0]


async def test_another_server_gets_what_one_fails_with(world: World) -> None:
    fakes = [await world.fake(status=500), await world.fake()]
    inference = world.inference(*fakes)
    await until_ready(inference, 2)
    sent = 0
    while inference.health().replicas[0].failures == 0:  # left out after three in a row
        sent += 1
        call = GenerateCall(id="x", messages=[Message("user", f"Hi {sent}")])
        assert text_in(await events_of(inference, call)) == "hello there friend"
    assert len(fakes[0].chats) == 3
    assert len(fakes[1].chats) == sent
    assert inference.health().replicas[1].failures == 0


async def test_a_silent_server_gets_a_request_once(world: World) -> None:
    fakes = [await world.fake()]
    fakes[0].gate.clear()
    inference = world.inference(*fakes, silence_seconds=0.3)
    await until_ready(inference, 1)
    with pytest.raises(ModelUnavailableError, match="is silent"):
        await events_of(inference, GenerateCall(id="x", messages=HELLO))
    assert len(fakes[0].chats) == 1, "each further try would take as long again"
    fakes.append(await world.fake())
    both = world.inference(*fakes, silence_seconds=0.3)
    await until_ready(both, 2)
    sent = 0
    while len(fakes[0].chats) == 1:
        sent += 1
        call = GenerateCall(id="x", messages=[Message("user", f"Hi {sent}")])
        assert text_in(await events_of(both, call)) == "hello there friend"
    assert len(fakes[1].chats) == sent


async def test_a_dead_server_is_left_out_and_comes_back(world: World) -> None:
    alive = await world.fake()
    async with serving(FakeServer()) as dying:
        port = int(dying.url.rpartition(":")[2])
        inference = world.inference(alive, dying)
        await until_ready(inference, 2)
    sent = 0
    while not any(each.state == "broken" for each in inference.health().replicas):
        sent += 1
        await events_of(inference, GenerateCall(id="x", messages=[Message("user", f"Hi {sent}")]))
    states = {each.url: each.state for each in inference.health().replicas}
    assert states == {alive.url: "ready", dying.url: "broken"}
    assert len(alive.chats) == sent
    again = await world.fake(port)
    await until_ready(inference, 2)
    await until(lambda: again.probes > 0)  # it may be another program now


async def test_without_any_server_requests_fail_at_once_and_readyz_says_so(world: World) -> None:
    async with serving(FakeServer()) as gone:
        pass
    client = await world.gateway(gone)
    reply = await client.post("/v1/chat/completions", json=chat())
    assert reply.status_code == 503
    assert gone.url in reply.json()["error"]["message"]
    assert reply.headers["retry-after"]
    assert (await client.get("/readyz")).status_code == 503
    assert (await client.get("/admin/health")).json()["status"] == "degraded"


async def test_closing_a_generation_closes_its_connection(world: World) -> None:
    fake = await world.fake(hold_at=1)
    inference = world.inference(fake)
    await until_ready(inference, 1)
    fake.gate.clear()
    events = inference.generate(GenerateCall(id="x", messages=HELLO))
    assert [type(await anext(events)) for _ in range(2)] == [Started, Delta]
    assert not fake.left.is_set()
    await events.aclose()
    await until(fake.left.is_set)
    assert inference.health().open_requests == 0


async def test_requests_of_one_conversation_go_to_one_server(world: World) -> None:
    fakes = [await world.fake() for _ in range(3)]
    inference = world.inference(*fakes)
    await until_ready(inference, 3)
    for _ in range(4):
        for number in range(12):
            turns = [Message("system", "You help."), Message("user", f"Conversation {number}")]
            await events_of(inference, GenerateCall(id="x", messages=turns))
    heads = [{each["messages"][1]["content"] for each in fake.chats} for fake in fakes]
    assert sum(map(len, heads)) == 12  # no conversation is on two servers
    sessions = [session for fake in fakes for session in fake.sessions]
    assert (len(sessions), len(set(sessions))) == (48, 12)  # for a router behind one address
    assert None not in sessions


async def test_a_server_takes_no_more_than_its_share(world: World) -> None:
    fakes = [await world.fake() for _ in range(2)]
    inference = world.inference(*fakes)
    await until_ready(inference, 2)
    for fake in fakes:
        fake.gate.clear()
    calls = [events_of(inference, GenerateCall(id="x", messages=HELLO)) for _ in range(8)]
    tasks = [asyncio.create_task(call) for call in calls]
    await until(lambda: sum(fake.open for fake in fakes) == 8)
    assert max(fake.open for fake in fakes) <= 5  # 1.25 times four
    for fake in fakes:
        fake.gate.set()
    await asyncio.gather(*tasks)


async def test_background_requests_leave_room_for_chats(world: World) -> None:
    fake = await world.fake()
    inference = world.inference(fake, background=1)
    await until_ready(inference, 1)
    fake.gate.clear()
    background = [GenerateCall(id="x", messages=HELLO, lane="background") for _ in range(3)]
    tasks = [asyncio.create_task(events_of(inference, call)) for call in background]
    await until(lambda: fake.open == 1)
    tasks.append(asyncio.create_task(events_of(inference, GenerateCall(id="x", messages=HELLO))))
    await until(lambda: fake.open == 2)
    assert inference.health().waiting == 2
    fake.gate.set()
    ends = [events[-1] for events in await asyncio.gather(*tasks)]
    assert all(isinstance(end, Finished) for end in ends)


async def test_a_conversation_loses_nothing_when_its_server_is_lost(world: World) -> None:
    fake = await world.fake(drop_after=1)
    client = await world.gateway(fake)
    made = (await client.post("/v1/conversations", json={})).json()["id"]
    path = f"/v1/conversations/{made}/messages"
    failed = await client.post(path, json={"text": "My cat is called Miez."})
    assert failed.status_code == 503
    assert "retry-after" in failed.headers
    fake.drop_after = None
    reply = await client.post(path, json={"text": "What is my cat called?"})
    assert reply.status_code < 300, reply.text
    assert any("Miez" in each["content"] for each in fake.chats[-1]["messages"])
    kept = (await client.get(path)).json()["data"]
    said = [each["text"] for each in kept if each["role"] == "user"]
    assert said == ["My cat is called Miez.", "What is my cat called?"]


async def test_a_reply_that_went_wrong_does_not_condemn_its_server(world: World) -> None:
    fake = await world.fake(status=503, code="bad_tool_call")
    client = await world.gateway(fake)
    reply = await client.post("/v1/chat/completions", json=chat())
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "bad_tool_call")
    (shown,) = (await client.get("/admin/health")).json()["upstream"]
    assert (shown["state"], shown["failures"], len(fake.chats)) == ("ready", 0, 1)
