"""Vectors over HTTP: OpenAI's and Ollama's official clients, a real embedding host."""

from __future__ import annotations

import array
import asyncio
import base64
from pathlib import Path
from typing import Any

import msgspec
import ollama
import openai
import pytest

from gateway.cli.common.files import opened_database
from gateway.config.settings import EmbeddingSettings, Settings
from gateway.store.request_log import get_record, list_records
from tests.gateway.api.conftest import Client, LiveServer, changed, client_of, in_process
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

NAME = "tiny-embedding"


@pytest.fixture
def settings(settings: Settings, tiny_embedding_model: Path) -> Settings:
    settings = changed(settings, "model", memory_headroom_bytes=0)
    return msgspec.structs.replace(
        settings, embedding=EmbeddingSettings(model=str(tiny_embedding_model), threads=1, context=256)
    )


def near(first: Any, second: Any) -> bool:
    return all(abs(a - b) < 3e-3 for a, b in zip(first, second, strict=True))


async def test_openais_client(server: LiveServer) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as ai:
        one = await ai.embeddings.create(model="default", input="A text.", user="me")
        assert (one.object, one.model, one.data[0].object, one.data[0].index) == (
            "list",
            NAME,
            "embedding",
            0,
        )
        assert len(one.data[0].embedding) == 64
        assert one.usage.prompt_tokens == one.usage.total_tokens > 2
        many = await ai.embeddings.create(model=NAME, input=["A text.", "Another."], encoding_format="float")
        assert [item.index for item in many.data] == [0, 1]
        assert near(many.data[0].embedding, one.data[0].embedding)
        short = await ai.embeddings.create(model=NAME, input="A text.", dimensions=8)
        assert len(short.data[0].embedding) == 8
        tokens = await ai.embeddings.create(model=NAME, input=[500, 501])
        lists = await ai.embeddings.create(model=NAME, input=[[500, 501], [502]])
        assert near(tokens.data[0].embedding, lists.data[0].embedding)
        assert len(lists.data) == 2
        with pytest.raises(openai.NotFoundError, match="gpt"):
            await ai.embeddings.create(model="gpt", input="a")
        with pytest.raises(openai.BadRequestError, match="64"):
            await ai.embeddings.create(model=NAME, input="a", dimensions=65)
        models = [model.id async for model in ai.models.list()]
        assert models == ["scripted", NAME]
        assert (await ai.models.retrieve(NAME)).id == NAME


async def test_ollamas_client(server: LiveServer) -> None:
    async with ollama.AsyncClient(host=server.url) as ai:
        made = await ai.embed(NAME, ["A text.", "Another."])
        assert [len(each) for each in made.embeddings] == [64, 64]
        assert (made.prompt_eval_count or 0) > 4
        assert len((await ai.embed(f"{NAME}:latest", "A text.", dimensions=8)).embeddings[0]) == 8
        old = await ai.embeddings(NAME, "A text.")
        assert near(old.embedding, made.embeddings[0])
        assert [model.model for model in (await ai.list()).models] == ["scripted:latest", f"{NAME}:latest"]
        assert f"{NAME}:latest" in [model.model for model in (await ai.ps()).models]
        shown = await ai.show(NAME)
        assert (shown.capabilities, shown.details and shown.details.family) == (
            ["embedding"],
            "gemma-embedding",
        )


async def test_base64_is_little_endian_float32(client: Client) -> None:
    body = {"model": NAME, "input": "A text."}
    plain = (await client.post("/v1/embeddings", json=body)).json()["data"][0]["embedding"]
    packed = (await client.post("/v1/embeddings", json=body | {"encoding_format": "base64"})).json()
    assert near(array.array("f", base64.b64decode(packed["data"][0]["embedding"])), plain)


async def test_tasks_add_their_prompts(client: Client) -> None:
    """The tiny model has EmbeddingGemma's architecture and so its task prompts."""

    async def vector(text: str, **fields: Any) -> list[float]:
        reply = await client.post("/v1/embeddings", json={"model": NAME, "input": text, **fields})
        found: list[float] = reply.json()["data"][0]["embedding"]
        return found

    query = await vector("A text.", task="query")
    assert near(query, await vector("task: search result | query: A text."))
    assert near(await vector("A text.", task="document"), await vector("title: none | text: A text."))
    assert not near(query, await vector("A text."))


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({}, 400, "input"),
    ({"input": []}, 400, "input"),
    ({"input": 7}, 400, "input"),
    ({"input": ["a", 7]}, 400, "of texts only"),
    ({"input": ["a", [7]]}, 400, "of texts only"),
    ({"input": [[]]}, 400, "input"),
    ({"input": [-1]}, 400, "input"),
    ({"input": [10**6]}, 400, "vocabulary"),
    ({"input": [2]}, 400, "control token"),
    ({"input": ["a"] * 2049}, 400, "2048"),
    ({"input": "word " * 400}, 400, "256"),
    ({"input": "a", "encoding_format": "hex"}, 400, "encoding_format"),
    ({"input": "a", "dimensions": 0}, 400, "dimensions"),
    ({"input": "a", "dimensions": 10**9}, 400, "dimensions"),
    ({"input": "a", "task": "dance"}, 400, "task"),
    ({"input": [500], "task": "query"}, 400, "task"),
    ({"input": "a", "keep_alive": "soon"}, 400, "keep_alive"),
    ({"input": "a", "user": "x" * 600}, 400, "user"),
    ({"input": "a", "surprise": 1}, 400, "surprise"),
    ({"input": "a", "model": "scripted"}, 404, "scripted"),
]


async def test_refusals(client: Client) -> None:
    for fields, status, named in REFUSED:
        reply = await client.post("/v1/embeddings", json={"model": "default", **fields})
        assert reply.status_code == status, fields
        assert named in reply.json()["error"]["message"], fields


async def test_health_and_metrics_include_the_embedding_host(client: Client) -> None:
    health = (await client.get("/admin/health")).json()["embedding"]
    assert health["host"]["state"] == "stopped", "asking wakes no model"
    assert (health["model"]["name"], health["dimensions"]) == (NAME, None)
    assert (health["index"]["state"], health["index"]["problem"]) == ("idle", None)
    await client.post("/v1/embeddings", json={"model": NAME, "input": ["a", "b"]})
    health = (await client.get("/admin/health")).json()["embedding"]
    assert health["host"]["state"] == "ready"
    assert health["model"]["loaded"]["dimensions"] == 64
    text = (await client.get("/metrics")).text
    assert 'embedding_host_state{state="ready"} 1.0' in text
    assert "embedding_texts_total 2.0" in text
    assert 'embedding_seconds_count{lane="interactive"} 1.0' in text
    assert 'indexed_documents_done{kind="wiki"} 0.0' in text
    gone = (await client.post("/admin/host/unload")).json()
    assert gone["embedding_host"]["state"] == "stopped"


async def test_a_client_that_leaves_stops_the_work(server: LiveServer) -> None:
    async with client_of(server) as client:
        await client.post("/v1/embeddings", json={"model": NAME, "input": "warm"})
        body = {"model": NAME, "input": ["a long text " * 50] * 2000}
        await leave(client, "/v1/embeddings", body, "embedding")


async def leave(client: Client, path: str, body: dict[str, Any], part: str) -> None:
    """Cancel a request once a host has it, and wait until the host has dropped it."""
    task = asyncio.create_task(client.post(path, json=body))

    async def open_requests() -> int:
        found: int = (await client.get("/admin/health")).json()[part]["host"]["open_requests"]
        return found

    async def none_is_open() -> bool:
        return not await open_requests()

    await until(open_requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(none_is_open)


async def test_without_an_embedding_model(settings: Settings, inference: ScriptedInference) -> None:
    plain = msgspec.structs.replace(settings, embedding=EmbeddingSettings())
    async with in_process(plain, inference) as client:
        reply = await client.post("/v1/embeddings", json={"model": "default", "input": "a"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (404, "embedding_not_configured")
        assert (await client.get("/admin/health")).json()["embedding"] is None
        assert "embedding_host" not in (await client.get("/metrics")).text


async def test_requests_are_recorded_however_they_end(client: Client, settings: Settings) -> None:
    headers = {"X-Request-ID": "good"}
    body = {"model": "default", "input": ["One.", "Two."], "dimensions": 8, "task": "query", "user": "me"}
    assert (await client.post("/v1/embeddings", json=body, headers=headers)).status_code == 200
    long = {"model": "default", "input": "word " * 600}
    refused = await client.post("/v1/embeddings", json=long, headers={"X-Request-ID": "bad"})
    assert refused.status_code == 400
    with opened_database(settings.database_path) as database:
        good, bad = (
            database.read_sync(lambda c, which=which: get_record(c, which)) for which in ("good", "bad")
        )
        listed = database.read_sync(lambda c: list_records(c, 9, kind="embed"))
    assert (good.kind, good.status, good.model, good.details) == (
        "embed",
        200,
        NAME,
        {"texts": 2, "user": "me"},
    )
    [made] = good.generations
    assert [message["content"] for message in made.messages] == ["One.", "Two."]
    assert made.obeyed == {"dimensions": 8, "task": "query"} and made.prompt_tokens > 2
    assert [line.split(":")[0] for line in made.output.split("\n")] == ["8 numbers"] * 2
    assert (bad.status, bad.error, bad.answer) == (400, "prompt_too_long", "")
    assert [each.id for each in listed] == ["bad", "good"]
