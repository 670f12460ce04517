"""What tests of upstream servers share."""

from __future__ import annotations

from typing import Any

import httpx2

from gateway.inference.interface import GenerateCall
from gateway.inference.upstream.inference import UpstreamInference
from model_host.protocol import Delta, Message
from tests.waiting import until

HELLO = [Message("user", "Hi")]


def chat(text: str = "Hi", **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}], **fields}


async def completed(client: httpx2.AsyncClient, body: dict[str, Any]) -> Any:
    reply = await client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def events_of(inference: UpstreamInference, call: GenerateCall) -> list[Any]:
    return [event async for event in inference.generate(call)]


def text_in(events: list[Any]) -> str:
    return "".join(event.text for event in events if isinstance(event, Delta))


async def until_ready(inference: UpstreamInference, count: int) -> None:
    inference.start()
    await until(lambda: sum(each.state == "ready" for each in inference.health().replicas) == count)
