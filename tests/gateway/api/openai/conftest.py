"""OpenAI's client, connected to the server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import openai
import pytest

from tests.gateway.api.conftest import LiveServer


@pytest.fixture
async def ai(server: LiveServer) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made
