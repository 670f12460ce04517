"""The model starts when a user types or a request begins to arrive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from gateway.base.errors import ModelUnavailableError
from tests.gateway.api.conftest import Client
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

CHAT = {"messages": [{"role": "user", "content": "hi"}]}


async def test_typing_wakes_the_model_and_does_not_wait(client: Client, inference: ScriptedInference) -> None:
    reply = await client.post("/v1/typing")
    assert (reply.status_code, reply.json()) == (202, {"state": "stopped"})
    await until(lambda: inference.events == ["warm"])
    assert (await client.post("/v1/typing")).json() == {"state": "ready"}


async def test_typing_does_not_fail_when_the_model_does(client: Client, inference: ScriptedInference) -> None:
    inference.error = ModelUnavailableError("the model's file is gone", retry_after=5.0)
    assert (await client.post("/v1/typing")).status_code == 202
    assert (await client.post("/v1/typing")).status_code == 202


async def test_a_request_that_is_still_arriving_wakes_the_model(
    client: Client, inference: ScriptedInference
) -> None:
    body = json.dumps(CHAT).encode()
    half = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield body[:20]
        await half.wait()
        yield body[20:]

    headers = {"Content-Type": "application/json"}
    request = asyncio.create_task(client.post("/v1/chat/completions", content=slowly(), headers=headers))
    await until(lambda: inference.events == ["warm"])
    half.set()
    assert (await request).status_code == 200


async def test_a_refused_body_does_not_wake_the_model(client: Client, inference: ScriptedInference) -> None:
    assert (await client.post("/v1/chat/completions", json={"messages": 1})).status_code == 400
    assert inference.events == []
