"""Gateways whose model is on fake servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gateway.config.settings import MemorySettings, ServerSettings, Settings, UpstreamSettings, WikiSettings
from gateway.inference.upstream.inference import UpstreamInference
from gateway.server.app import create_app
from tests.gateway.inference.upstream.fake import FakeServer, serving

MakeFake = Callable[..., Any]


@pytest.fixture
async def stack() -> AsyncIterator[AsyncExitStack]:
    async with AsyncExitStack() as made:
        yield made


class World:
    """Starts fake servers, and what uses them; all end with the test."""

    def __init__(self, folder: Path, stack: AsyncExitStack) -> None:
        self._folder = folder
        self._stack = stack

    async def fake(self, port: int = 0, **switches: Any) -> FakeServer:
        return await self._stack.enter_async_context(serving(FakeServer(**switches), port))

    def inference(self, *fakes: FakeServer, **settings: Any) -> UpstreamInference:
        return self.at([fake.url for fake in fakes], **settings)

    def at(self, urls: list[str], **settings: Any) -> UpstreamInference:
        made = UpstreamInference(UpstreamSettings(urls=urls, model="m", **settings))
        self._stack.push_async_callback(made.close)
        return made

    async def gateway(self, *fakes: FakeServer, **upstream: Any) -> httpx2.AsyncClient:
        """A client of the real application in front of the servers; streams arrive in one piece."""
        settings = Settings(
            data_dir=self._folder / "data",
            server=ServerSettings(port=0),
            upstream=UpstreamSettings(urls=[fake.url for fake in fakes], model="m", **upstream),
            wiki=WikiSettings(load_sample=False),
            memory=MemorySettings(fresh_share=0.0, facts=False, tasks=False),
        )
        app = create_app(settings)
        await self._stack.enter_async_context(app.router.lifespan_context(app))
        client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://127.0.0.1")
        return await self._stack.enter_async_context(client)


@pytest.fixture
def world(tmp_path: Path, stack: AsyncExitStack) -> World:
    return World(tmp_path, stack)
