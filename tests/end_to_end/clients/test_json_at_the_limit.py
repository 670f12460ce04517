"""JSON that the limit of tokens would cut off is closed instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.end_to_end.server import Server

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "born": {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]},
        "works": {"type": "array", "items": {"type": "string", "minLength": 2}},
        "kind": {"enum": ["écrivain", "peintre"]},
    },
    "required": ["name", "born", "works", "kind"],
}
ASK = [{"role": "user", "content": "Describe Victor Hugo as JSON, with all his works."}]


@pytest.fixture(scope="module", params=["tiny_model", "demo_model"])
def server(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("json") / "data", request.getfixturevalue(request.param))
    yield server
    server.stop()


def chat(server: Server, schema: dict[str, Any], limit: int, seed: int) -> tuple[str, str, int]:
    wanted = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    body = {"messages": ASK, "response_format": wanted, "max_tokens": limit, "seed": seed, "temperature": 1.2}
    reply = server.client.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    [choice] = reply.json()["choices"]
    return choice["message"]["content"], choice["finish_reason"], reply.json()["usage"]["completion_tokens"]


def is_cut(server: Server, schema: dict[str, Any], limit: int, seed: int) -> bool:
    """Whether the limit left no time to close the JSON; what is closed is as the schema wants it."""
    text, reason, tokens = chat(server, schema, limit, seed)
    assert tokens <= limit
    try:
        made = json.loads(text)
    except ValueError:
        # The shortest reply, which spells every byte, has less than 100 tokens.
        assert (reason, limit < (100 if schema is PERSON else 2)) == ("length", True), (limit, text)
        return True
    assert jsonschema_rs.validator_for(schema).is_valid(made), text
    return False


@pytest.mark.parametrize("schema", [PERSON, {"type": "object"}, {}], ids=str)
def test_every_limit_that_is_long_enough(server: Server, schema: dict[str, Any]) -> None:
    limits = (1, 2, 5, 21, 40, 100, 101)
    cut = [limit for seed, limit in enumerate(limits) if is_cut(server, schema, limit, seed)]
    assert len(cut) <= (5 if schema is PERSON else 1)


def test_a_vocabulary_of_bytes(tmp_path: Path, smollm2: Path) -> None:
    server = Server(tmp_path / "data", smollm2)
    try:
        is_cut(server, PERSON, 21, seed=1)
        assert not is_cut(server, PERSON, 100, seed=2)
    finally:
        server.stop()


def test_the_limit_is_the_reason(server: Server) -> None:
    schema = {"type": "array", "items": {"type": "string", "minLength": 400}, "minItems": 1}
    text, reason, tokens = chat(server, schema, 450, 1)
    assert len(json.loads(text)[0]) >= 400
    assert (reason, tokens <= 450) == ("length", True) or reason == "stop"
    text, reason, tokens = chat(server, {"type": "string", "minLength": 60}, 10, 1)
    assert (reason, tokens) == ("length", 10)
