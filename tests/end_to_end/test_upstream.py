"""A gateway whose model is in another gateway: the same replies, and nothing lost when that one is killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.end_to_end.conftest import StartServer
from tests.end_to_end.server import Server
from tests.waiting import eventually

TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"at": {"enum": ["a", "b"]}}},
    },
}
SCHEMA = {"type": "array", "items": {"enum": ["red", "blue"]}, "minItems": 2, "maxItems": 2}


def in_front_of(start_server: StartServer, upstream: Server) -> Server:
    env = {"HEARTH_UPSTREAM__URLS": upstream.url, "HEARTH_UPSTREAM__MODEL": "tiny"}
    return start_server(env=env | {"HEARTH_ASK__TARGET_SECONDS": "0", "HEARTH_MEMORY__FRESH_SHARE": "0"})


@pytest.fixture
def upstream(start_server: StartServer) -> Server:
    return start_server(env={"HEARTH_ASK__TARGET_SECONDS": "0"})


def test_replies_are_those_of_the_upstream(start_server: StartServer, upstream: Server) -> None:
    front = in_front_of(start_server, upstream)
    chat = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 12, "temperature": 0}
    named = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/v1/chat/completions", chat),
        ("/v1/chat/completions", chat | {"response_format": named, "max_tokens": 40}),
        ("/v1/chat/completions", chat | {"grammar": 'root ::= "yes" | "no"'}),
        ("/v1/chat/completions", chat | {"logprobs": True, "top_logprobs": 2}),
        ("/v1/chat/completions", chat | {"tools": [TOOL], "tool_choice": "required", "max_tokens": 60}),
        ("/v1/completions", {"prompt": "once upon", "max_tokens": 8, "temperature": 0}),
        ("/v1/messages/count_tokens", {"model": "x", "messages": chat["messages"]}),
        ("/v1/chat/completions/input_tokens", {"messages": chat["messages"]}),
        ("/tokenize", {"content": "hello there"}),
        ("/detokenize", {"tokens": [5, 6, 7]}),
    ]
    for path, body in bodies:
        answers = [_answer(server.client.post(path, json=body)) for server in (upstream, front)]
        assert answers[0] == answers[1], path


def _answer(reply: httpx2.Response) -> Any:
    assert reply.status_code == 200, reply.text
    found = reply.json()
    if "choices" not in found:
        return found
    choice, usage = found["choices"][0], found["usage"]
    logprobs = [each["token"] for each in (choice["logprobs"] or {}).get("content", [])]
    message = choice.get("message", {"content": choice.get("text")})
    said = [message["content"], *(call["function"] for call in message.get("tool_calls", []))]
    return said, choice["finish_reason"], logprobs, usage["prompt_tokens"], usage["completion_tokens"]


def test_an_upstream_killed_in_the_middle_of_a_stream_loses_nothing(
    start_server: StartServer, upstream: Server
) -> None:
    front = in_front_of(start_server, upstream)
    made = front.client.post("/v1/conversations", json={}).json()["id"]
    path = f"/v1/conversations/{made}/messages"
    assert front.client.post(path, json={"text": "first"}).status_code < 300
    with front.client.stream("POST", path, json={"text": "second", "stream": True}) as reply:
        events = []
        for line in reply.iter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                events.append(json.loads(line.removeprefix("data: ")))
                if len(events) == 1:
                    upstream.kill()
    assert "try again" in json.dumps(events[-1]), events[-1]
    refused = front.client.post(path, json={"text": "third"})
    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert front.health()["upstream"][0]["state"] == "broken"
    port = upstream.url.rpartition(":")[2]
    start_server("--port", port)
    eventually(lambda: front.health()["upstream"][0]["state"] == "ready", "the upstream did not come back")
    answered = front.client.post(path, json={"text": "fourth"})
    assert answered.status_code < 300, answered.text
    kept = front.client.get(path).json()["data"]
    said = [each["text"] for each in kept if each["role"] == "user"]
    assert said == ["first", "second", "fourth"]  # the third one was refused


def test_vectors_and_scores_come_from_the_upstream(
    start_server: StartServer, tiny_embedding_model: Path, tiny_reranker: Path
) -> None:
    models = {"EMBEDDING__MODEL": tiny_embedding_model, "RERANK__MODEL": tiny_reranker}
    behind = start_server(env={f"HEARTH_{name}": str(path) for name, path in models.items()})
    names = {f"HEARTH_{name}": path.stem for name, path in models.items()}
    urls = {f"HEARTH_UPSTREAM__{name}_URLS": behind.url for name in ("EMBEDDING", "RERANK")}
    front = start_server(env=names | urls)
    texts = ["a car", "a boat on the water", "a plane"]
    asked = ("/v1/embeddings", {"model": tiny_embedding_model.stem, "input": texts})
    ranked = ("/v1/rerank", {"model": tiny_reranker.stem, "query": "boat", "documents": texts})
    for path, body in (asked, ranked):
        there, here = (server.client.post(path, json=body) for server in (behind, front))
        assert (there.status_code, here.status_code) == (200, 200), here.text
        for a, b in zip(_numbers(there.json()), _numbers(here.json()), strict=True):
            assert a == pytest.approx(b, abs=0.02)  # batching changes a random model's digits
        assert there.json()["usage"] == here.json()["usage"]
    health = front.health()
    assert health["embedding"]["host"]["pid"] is None
    assert health["rerank"]["host"]["state"] == "ready"
    shorter = front.client.post(asked[0], json=asked[1] | {"dimensions": 4}).json()["data"][0]["embedding"]
    assert sum(number * number for number in shorter) == pytest.approx(1.0, abs=1e-5)
    behind.kill()
    refused = front.client.post(asked[0], json=asked[1])
    assert refused.status_code == 503
    assert "try again" in refused.text


def _numbers(reply: Any) -> list[float]:
    if "data" in reply:
        return [number for each in reply["data"] for number in each["embedding"]]
    return [each["relevance_score"] for each in sorted(reply["results"], key=lambda each: int(each["index"]))]


def test_a_local_tokenizer_counts_for_a_server_that_cannot(
    start_server: StartServer, upstream: Server, tiny_model: Path
) -> None:
    env = {"HEARTH_UPSTREAM__URLS": upstream.url, "HEARTH_UPSTREAM__MODEL": "tiny"}
    front = start_server(env=env | {"HEARTH_UPSTREAM__TOKENIZER": str(tiny_model)})
    long = {"messages": [{"role": "user", "content": "hello there " * 600}]}
    counts = [
        server.client.post("/v1/chat/completions/input_tokens", json=long).json()["input_tokens"]
        for server in (upstream, front)
    ]
    assert counts[0] == counts[1] > 1000
    assert len(front.children()) >= 1
    assert front.health()["upstream"][0]["abilities"]["tokens"] == "gguf"
