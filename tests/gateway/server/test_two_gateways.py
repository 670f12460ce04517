"""Two gateways on one PostgreSQL database, in one process: what holds over both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest

from gateway.config.settings import StoreSettings
from gateway.memory.service import Conversations
from tests.gateway.api.conftest import changed, live
from tests.gateway.api.conversations.test_conversations import say, start
from tests.gateway.api.conversations.test_turns import Gated
from tests.gateway.memory.scripted_server import settings_for
from tests.postgres import Server
from tests.waiting import PATIENCE, until


class Gateway:
    def __init__(self, inference: Gated, client: httpx2.AsyncClient, conversations: Conversations) -> None:
        self.inference = inference
        self.client = client
        self.conversations = conversations


@pytest.fixture
async def pair(postgres_server: Server, tmp_path: Path) -> AsyncIterator[tuple[Gateway, Gateway]]:
    url = postgres_server.database()
    async with AsyncExitStack() as stack:
        made = []
        for name in ("a", "b"):
            settings = msgspec.structs.replace(settings_for(tmp_path / name, 0), store=StoreSettings(url=url))
            inference = Gated()
            quiet = changed(changed(settings, "memory", facts=False, tasks=False), "ask", max_concurrent=1)
            server = await stack.enter_async_context(live(quiet, inference))
            client = httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE)
            await stack.enter_async_context(client)
            services = server.server.config.app.state.services  # type: ignore[union-attr]
            made.append(Gateway(inference, client, services.conversations))
        yield made[0], made[1]


async def test_messages_take_turns(pair: tuple[Gateway, Gateway]) -> None:
    one, two = pair
    name = await start(one.client)
    first = asyncio.create_task(say(one.client, name, "line one"))
    await until(lambda: one.inference.answers("line one"))
    second = asyncio.create_task(say(two.client, name, "line two"))
    await until(lambda: two.conversations.turns.users(name) == 1)
    repeated = asyncio.create_task(say(two.client, name, "line one", id="mine"))
    await until(lambda: two.conversations.turns.users(name) == 2)
    two.inference.gate.release()
    two.inference.gate.release()
    assert not two.inference.under_way
    one.inference.gate.release()
    await asyncio.gather(first, second, repeated)
    again = await say(one.client, name, "line one", id="mine")
    assert again["message"]["id"] == (await repeated)["message"]["id"]
    page: dict[str, Any] = (await two.client.get(f"/v1/conversations/{name}/messages")).json()
    said = [each["text"] for each in page["data"]]
    expected = ["line one", "So be it.", "line two", "So be it.", "line one", "So be it."]
    assert said in (expected, expected[::-1])


async def test_news_of_the_other_gateway(pair: tuple[Gateway, Gateway]) -> None:
    one, two = pair
    name = await start(one.client)
    async with two.client.stream("GET", f"/v1/conversations/{name}/events") as reply:
        lines = reply.aiter_lines()
        assert await anext(lines) == "event: state"
        assert (await one.client.delete(f"/v1/conversations/{name}")).status_code == 200
        assert "event: erased" in [line async for line in lines]


async def test_questions_are_counted_together(pair: tuple[Gateway, Gateway]) -> None:
    one, two = pair
    asked = {"question": "Which city is the capital of France?"}
    running = asyncio.create_task(one.client.post("/ask", json=asked))
    await until(lambda: bool(one.inference.under_way))
    for accept in ("*/*", "text/event-stream"):
        refused = await two.client.post("/ask", json=asked, headers={"Accept": accept})
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "overloaded")
    for each in pair:
        for _ in range(20):
            each.inference.gate.release()
    assert (await running).status_code == 200
    assert (await two.client.post("/ask", json=asked)).status_code == 200
