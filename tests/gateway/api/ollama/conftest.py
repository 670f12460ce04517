"""Ollama's client, connected to the server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import ollama
import pytest

from tests.gateway.api.conftest import LiveServer


@pytest.fixture
async def ai(server: LiveServer) -> AsyncIterator[ollama.AsyncClient]:
    async with ollama.AsyncClient(host=server.url) as made:
        yield made
