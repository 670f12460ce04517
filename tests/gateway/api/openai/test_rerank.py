"""Scores over HTTP: as Cohere's and Jina's clients ask for them, from a real reranker host."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from gateway.cli.common.files import opened_database
from gateway.config.settings import EmbeddingSettings, RerankSettings, Settings
from gateway.store.request_log import RequestRecord, get_record, list_records
from tests.gateway.api.conftest import Client, changed, connected, in_process
from tests.gateway.api.openai.test_embeddings import leave
from tests.gateway.api.scripted import ScriptedInference

NAME = "tiny-reranker"
DOCUMENTS = ["a fish", "a bird that flies", "the sea is deep", "42"]


@pytest.fixture
def settings(settings: Settings, tiny_reranker: Path) -> Settings:
    settings = changed(settings, "model", memory_headroom_bytes=0)
    return msgspec.structs.replace(settings, rerank=RerankSettings(model=str(tiny_reranker), threads=1))


async def scores(client: Client, path: str = "/v1/rerank", **fields: Any) -> dict[str, Any]:
    reply = await client.post(path, json={"query": "what swims?", "documents": DOCUMENTS, **fields})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found


async def test_cohere_and_jina(client: Client) -> None:
    """The bodies that their clients send, and the fields that they read."""
    reply = await scores(client, "/v2/rerank", model=NAME, top_n=3, max_tokens_per_doc=4096, priority=0)
    found = [(each["index"], each["relevance_score"]) for each in reply["results"]]
    assert len(found) == 3
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert all(0.0 < score < 1.0 for _, score in found)
    assert reply["id"]
    assert reply["meta"]["tokens"]["input_tokens"] == reply["usage"]["total_tokens"] > 40
    assert "document" not in reply["results"][0]

    objects = [{"text": text} for text in DOCUMENTS]
    jina = await scores(client, model="default", documents=objects, return_documents=True)
    assert (jina["model"], jina["object"]) == (NAME, "list")
    assert [each["document"]["text"] for each in jina["results"]] == [
        DOCUMENTS[each["index"]] for each in jina["results"]
    ]
    assert sorted(each["index"] for each in jina["results"]) == [0, 1, 2, 3]
    assert [each["index"] for each in jina["results"]][:3] == [index for index, _ in found]
    assert [each["index"] for each in (await scores(client, "/rerank", top_n=99))["results"]] == [
        each["index"] for each in jina["results"]
    ]


async def test_many_documents_in_order(client: Client) -> None:
    documents = [f"text {number}" for number in range(600)]  # more than two messages of the protocol take
    found = (await scores(client, documents=documents))["results"]
    by_index = {each["index"]: each["relevance_score"] for each in found}
    assert sorted(by_index) == list(range(600))
    [alone] = (await scores(client, documents=[documents[555]]))["results"]
    assert abs(alone["relevance_score"] - by_index[555]) < 1e-3


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"query": None}, "query"),
    ({"query": " "}, "query"),
    ({"query": 7}, "query"),
    ({"query": ["a"]}, "query"),
    ({"documents": None}, "documents"),
    ({"documents": []}, "documents"),
    ({"documents": "a"}, "documents"),
    ({"documents": ["a", ""]}, "documents[1]"),
    ({"documents": ["a", 7]}, "documents[1]"),
    ({"documents": [{"text": "a", "title": "b"}]}, "documents[0].title"),
    ({"documents": [{}]}, "documents[0].text"),
    ({"documents": ["a"] * 10_000}, "documents"),
    ({"documents": ["a", "b " * 600]}, "documents[1]"),
    ({"documents": [*["a"] * 280, "b " * 600]}, "documents[280]"),
    ({"query": "q " * 600}, "documents[0]"),
    ({"top_n": 0}, "top_n"),
    ({"top_n": 1.5}, "top_n"),
    ({"return_documents": "yes"}, "return_documents"),
    ({"max_tokens_per_doc": 0}, "max_tokens_per_doc"),
    ({"rank_fields": ["title"]}, "rank_fields"),
    ({"texts": ["a"]}, "texts"),
]


@pytest.mark.parametrize(("fields", "named"), REFUSED)
async def test_refused_by_name(client: Client, fields: dict[str, Any], named: str) -> None:
    body = {"query": "q", "documents": ["a"], **fields}
    reply = await client.post("/v1/rerank", json={k: v for k, v in body.items() if v is not None})
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == named
    assert named in reply.json()["error"]["message"]


async def test_odd_texts_have_scores(client: Client) -> None:
    texts = ["a\0b", "[CLS] [SEP]", "\u202e\ufdd0", "日本語", "🐟" * 20]
    assert len((await scores(client, documents=texts))["results"]) == len(texts)
    long = await scores(client, documents=["b " * 4000], max_tokens_per_doc=8)
    assert long["usage"]["total_tokens"] < 30


async def test_without_a_reranker_the_remedy_is_named(
    settings: Settings, inference: ScriptedInference, tiny_embedding_model: Path
) -> None:
    without = msgspec.structs.replace(
        settings, rerank=RerankSettings(), embedding=EmbeddingSettings(model=str(tiny_embedding_model))
    )
    async with in_process(without, inference) as client:
        reply = await client.post("/v1/rerank", json={"query": "q", "documents": ["a"]})
    assert reply.status_code == 404
    error = reply.json()["error"]
    assert error["code"] == "rerank_not_configured"
    assert "an embedding model cannot replace one" in error["message"]
    assert "rerank.model" in error["message"]


async def test_it_is_shown_and_recorded(client: Client, settings: Settings) -> None:
    body = {"query": "q", "documents": ["a", "b"], "user": "me"}
    wrong = (await client.post("/v1/rerank", json=body | {"model": "other"})).json()
    assert wrong["error"]["code"] == "model_not_found"
    health = (await client.get("/admin/health")).json()["rerank"]
    assert (health["host"]["state"], health["model"]["name"]) == ("stopped", NAME)
    await client.post("/v1/rerank", json=body, headers={"X-Request-ID": "good"})
    health = (await client.get("/admin/health")).json()["rerank"]
    assert (health["host"]["state"], health["model"]["loaded"]["dimensions"]) == ("ready", 1)
    assert [model["id"] for model in (await client.get("/v1/models")).json()["data"]] == ["scripted", NAME]
    assert 'rerank_host_state{state="ready"} 1.0' in (await client.get("/metrics")).text
    [record] = recorded(settings)
    assert (record.id, record.status, record.details) == ("good", 200, {"documents": 2, "user": "me"})
    assert [each["role"] for each in record.generations[0].messages] == ["query", "document", "document"]
    assert record.answer.count("\n") == 1
    assert (await client.post("/admin/host/unload")).json()["rerank_host"]["state"] == "stopped"


async def test_a_client_that_leaves_cancels(settings: Settings, inference: ScriptedInference) -> None:
    body = {"query": "q", "documents": [f"{number} " + "word " * 40 for number in range(1000)]}
    async with connected(settings, inference) as client:
        await client.post("/v1/rerank", json={"query": "q", "documents": ["warm"]})
        await leave(client, "/v1/rerank", body, "rerank")
    assert [each.status for each in recorded(settings)] == [499, 200]


def recorded(settings: Settings) -> list[RequestRecord]:
    with opened_database(settings.database_path) as database:
        listed = database.read_sync(lambda c: list_records(c, 9, kind="rerank"))
        return [database.read_sync(lambda c, each=each: get_record(c, each.id)) for each in listed]
