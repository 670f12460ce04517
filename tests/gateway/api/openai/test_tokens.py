"""POST /tokenize and /detokenize: fields, shapes, errors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gateway.api.conftest import Client


async def test_there_and_back(client: Client) -> None:
    for name in ("content", "text"):
        reply = await client.post("/tokenize", json={name: "hé"})
        assert reply.json() == {"tokens": [104, 0xC3, 0xA9]}
    back = await client.post("/detokenize", json=reply.json())
    assert back.json() == {"content": "hé"}


async def test_special_tokens_around_a_text(client: Client) -> None:
    reply = await client.post("/tokenize", json={"content": "h", "add_special": True})
    assert reply.json() == {"tokens": [60, 104]}


async def test_pieces_that_are_no_characters_are_bytes(client: Client) -> None:
    body = {"content": "hé", "with_pieces": True, "add_special": False, "parse_special": None}
    reply = await client.post("/tokenize", json=body)
    assert reply.json()["tokens"] == [
        {"id": 104, "piece": "h"},
        {"id": 0xC3, "piece": [0xC3]},
        {"id": 0xA9, "piece": [0xA9]},
    ]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/tokenize", {}, "content"),
        ("/tokenize", {"content": "a", "text": "b"}, "content"),
        ("/tokenize", {"content": 5}, "content"),
        ("/tokenize", {"content": "a", "add_special": 1}, "add_special"),
        ("/tokenize", {"content": "a", "parse_special": True}, "parse_special"),
        ("/tokenize", {"content": "a", "model": "x"}, "model"),
        ("/detokenize", {}, "tokens"),
        ("/detokenize", {"tokens": "a"}, "tokens"),
        ("/detokenize", {"tokens": [1.5]}, "tokens[0]"),
        ("/detokenize", {"tokens": [-1]}, "tokens[0]"),
        ("/detokenize", {"tokens": [2**31]}, "tokens[0]"),
    ],
)
async def test_refusals(client: Client, path: str, body: dict[str, Any], param: str) -> None:
    reply = await client.post(path, json=body)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] in (param, param.partition("[")[0] + "[...]")
