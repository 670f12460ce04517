"""Vectors for Ollama's official client."""

from __future__ import annotations

import array
import dataclasses
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import ollama
import pytest

from gateway.base.errors import PromptTooLongError
from gateway.config.settings import Settings
from gateway.inference.embedding import EmbedCall, Embedder, Embeddings
from gateway.server.app import create_app
from tests.gateway.api.conftest import Client, LiveServer
from tests.gateway.api.scripted import ScriptedInference


class ScriptedEmbedder(Embedder):
    """The first dimension is the number of words, of which a text may have three."""

    name = "words"

    def __init__(self) -> None:
        self.asked: list[EmbedCall] = []

    async def embed(self, call: EmbedCall) -> Embeddings:
        self.asked.append(call)
        counts = [len(str(text).split()) for text in call.texts]
        if max(counts, default=0) > 3:
            raise PromptTooLongError("text 1 has 4 tokens, 3 fit", param="input")
        width = call.dimensions or 2
        vectors = [array.array("f", [count, *[0.0] * (width - 1)]).tobytes() for count in counts]
        return Embeddings(vectors, counts, "words")


@pytest.fixture
def embedder() -> ScriptedEmbedder:
    return ScriptedEmbedder()


@pytest.fixture
async def client(
    settings: Settings, inference: ScriptedInference, embedder: ScriptedEmbedder
) -> AsyncIterator[Client]:
    app = create_app(settings, inference=inference)
    async with app.router.lifespan_context(app):
        app.state.services = dataclasses.replace(app.state.services, embedding=embedder)
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as made:
            yield made


async def test_one_text_and_many(client: Client, embedder: ScriptedEmbedder) -> None:
    body = {"model": "words:latest", "input": ["a b", "c"], "keep_alive": "5m", "options": {}}
    reply = (await client.post("/api/embed", json=body)).json()
    assert (reply["model"], reply["embeddings"]) == ("words:latest", [[2.0, 0.0], [1.0, 0.0]])
    assert (reply["prompt_eval_count"], reply["total_duration"] > 0) == (3, True)
    one = await client.post("/api/embed", json={"model": "default", "input": "a", "dimensions": 3})
    assert one.json()["embeddings"] == [[1.0, 0.0, 0.0]]
    old = await client.post("/api/embeddings", json={"model": "words", "prompt": "a b c"})
    assert old.json() == {"embedding": [3.0, 0.0]}
    assert [call.texts for call in embedder.asked] == [["a b", "c"], ["a"], ["a b c"]]
    assert (embedder.asked[0].keep_alive, embedder.asked[0].owner) == (300.0, "local")


@pytest.mark.parametrize(
    ("path", "fields", "status", "named"),
    [
        ("/api/embed", {"input": "a", "model": "scripted"}, 404, "scripted"),
        ("/api/embed", {"input": "a b c d"}, 400, "3 fit"),
        ("/api/embed", {"input": "a", "options": {"num_ctx": 5}}, 400, "options"),
        ("/api/embed", {"input": 7}, 400, "input"),
        ("/api/embed", {}, 400, "input"),
        ("/api/embed", {"input": "a", "dimensions": 0}, 400, "dimensions"),
        ("/api/embeddings", {"prompt": "a", "dimensions": 2}, 400, "dimensions"),
        ("/api/embeddings", {"prompt": ["a"]}, 400, "prompt"),
    ],
)
async def test_refusals(client: Client, path: str, fields: dict[str, Any], status: int, named: str) -> None:
    reply = await client.post(path, json={"model": "default", **fields})
    assert reply.status_code == status
    assert named in reply.json()["error"]


async def test_without_an_embedding_model(server: LiveServer) -> None:
    async with ollama.AsyncClient(host=server.url) as ai:
        with pytest.raises(ollama.ResponseError, match="hearth pull embeddinggemma") as missing:
            await ai.embed("embeddinggemma", "a")
        assert missing.value.status_code == 404
        with pytest.raises(ollama.ResponseError, match="no embedding model"):
            await ai.embeddings("embeddinggemma", "a")


async def test_no_texts_give_no_vectors(client: Client) -> None:
    reply = await client.post("/api/embed", json={"model": "words", "input": []})
    assert (reply.status_code, reply.json()["embeddings"]) == (200, [])
