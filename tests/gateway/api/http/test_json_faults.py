"""Refused JSON, in requests and from models: deep nesting, and values that JSON cannot express."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from gateway.api.parsing.fields import decode_object
from gateway.api.parsing.json_faults import MAX_DEPTH, deep_field
from gateway.inference.interface import GenerateCall
from model_host.protocol import ToolDelta
from tests.gateway.api.conftest import Client
from tests.gateway.api.scripted import ScriptedInference

HI = [{"role": "user", "content": "hi"}]
FUNCTION = {"name": "f", "parameters": "DEEP"}
# Path, body with DEEP for a nested value, and the field that the error names.
REQUESTS: list[tuple[str, dict[str, Any], str]] = [
    (
        "/v1/chat/completions",
        {"messages": HI, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": "DEEP"}}},
        "response_format",
    ),
    ("/v1/chat/completions", {"messages": HI, "tools": [{"type": "function", "function": FUNCTION}]}, "tools"),
    ("/v1/completions", {"prompt": "hi", "logit_bias": "DEEP"}, "logit_bias"),
    ("/v1/responses", {"input": "hi", "tools": [{"type": "function", **FUNCTION}]}, "tools"),
    (
        "/v1/responses",
        {"input": "hi", "text": {"format": {"type": "json_schema", "name": "x", "schema": "DEEP"}}},
        "text",
    ),
    (
        "/v1/messages",
        {"model": "m", "max_tokens": 9, "messages": HI, "tools": [{"name": "f", "input_schema": "DEEP"}]},
        "tools",
    ),
    (
        "/v1/messages",
        {
            "model": "m",
            "max_tokens": 9,
            "messages": HI,
            "output_config": {"format": {"type": "json_schema", "schema": "DEEP"}},
        },
        "output_config",
    ),
    ("/v1/messages/count_tokens", {"model": "m", "messages": [{"role": "user", "content": "DEEP"}]}, "messages"),
    ("/api/chat", {"model": "m", "messages": HI, "format": "DEEP"}, "format"),
    ("/api/chat", {"model": "m", "messages": HI, "tools": [{"type": "function", "function": FUNCTION}]}, "tools"),
    ("/api/generate", {"model": "m", "prompt": "hi", "format": "DEEP"}, "format"),
    ("/v1/embeddings", {"input": "DEEP"}, "input"),
    ("/v1/conversations", {"participants": "DEEP"}, "participants"),
    ("/v1/tasks", {"title": "DEEP"}, "title"),
    ("/ask", {"question": "DEEP"}, "question"),
]  # fmt: skip


def nested(depth: int) -> str:
    """A schema of objects in lists: two levels a step."""
    return '{"anyOf":[' * (depth // 2) + "{}" + "]}" * (depth // 2)


def sent(body: dict[str, Any], depth: int) -> bytes:
    return json.dumps(body).replace('"DEEP"', nested(depth)).encode()


async def post(client: Client, path: str, body: bytes) -> Any:
    return await client.post(path, content=body, headers={"Content-Type": "application/json"})


@pytest.mark.parametrize("depth", [MAX_DEPTH + 2, 300, 900, 100_000])
@pytest.mark.parametrize(("path", "body", "field"), REQUESTS)
async def test_deep_nesting_is_refused_by_name(
    client: Client, inference: ScriptedInference, path: str, body: dict[str, Any], field: str, depth: int
) -> None:
    reply = await post(client, path, sent(body, depth))
    assert reply.status_code == 400, reply.text
    assert f"`{field}` is nested too deeply" in reply.text
    assert str(MAX_DEPTH) in reply.text
    assert inference.calls == []


async def test_the_allowed_depth_is_accepted_and_recorded(
    client: Client, inference: ScriptedInference
) -> None:
    body = REQUESTS[0][1]
    assert (await post(client, "/v1/chat/completions", sent(body, MAX_DEPTH - 4))).status_code == 200
    assert len(inference.calls) == 1
    assert "request_records_failed_total 0.0" in (await client.get("/metrics")).text


async def test_arguments_of_an_earlier_call(client: Client) -> None:
    deep = f'{{"x":{nested(300)}}}'
    function = {"name": "f", "arguments": deep}
    call = {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    result = {"role": "tool", "tool_call_id": "c", "content": "1"}
    reply = await client.post("/v1/chat/completions", json={"messages": [*HI, call, result]})
    assert (reply.status_code, reply.json()["error"]["param"]) == (
        400,
        "messages[1].tool_calls[0].function.arguments",
    )
    items = [
        {"role": "user", "content": "hi"},
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": deep},
        {"type": "function_call_output", "call_id": "c", "output": "1"},
    ]
    reply = await client.post("/v1/responses", json={"input": items})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "input[1].arguments")


@pytest.mark.parametrize("depth", [300, 100_000])
async def test_arguments_that_a_model_writes(
    client: Client, inference: ScriptedInference, depth: int
) -> None:
    """Ollama and Anthropic send arguments decoded; those that cannot be decoded become text."""
    deep = f'{{"x":{nested(depth)}}}'

    def script(call: GenerateCall) -> list[ToolDelta]:
        return [ToolDelta(call.id, 0, call_id="c", name="f", arguments=deep)]

    inference.script = script
    tool = {"name": "f", "parameters": {"type": "object"}}
    ollama = {"model": "default", "messages": HI, "stream": False}
    reply = await client.post("/api/chat", json=ollama | {"tools": [{"type": "function", "function": tool}]})
    assert (reply.status_code, reply.json()["message"]["content"]) == (200, f"f {deep}")
    anthropic = {"model": "default", "max_tokens": 9, "messages": HI}
    tools = [{"name": "f", "input_schema": {"type": "object"}}]
    reply = await client.post("/v1/messages", json=anthropic | {"tools": tools})
    assert (reply.status_code, reply.json()["content"]) == (200, [{"type": "text", "text": f"f {deep}"}])


def test_brackets_in_strings_do_not_count() -> None:
    assert deep_field(json.dumps({"a": ["[" * 500, '\\"[{' * 500], "b": [[1]] * 500}).encode()) is None


@pytest.mark.parametrize("body", [b'"' * 400_000, b'\\"' * 200_000, b'"' + b'\\"' * 200_000, b"[" * 400_000])
@pytest.mark.timeout(20)
def test_the_depth_check_takes_linear_time(body: bytes) -> None:
    deep_field(b"[" * MAX_DEPTH + body)
    deep_field(b"{}" * MAX_DEPTH + body)


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        (r'{"\ud800": NaN}', None, "the body: a name in it contains half of a surrogate pair"),
        (r'{"messages": [{"\ud800": 1}]}', "messages[0]", "`messages[0]`: a name in it"),
        (
            r'{"messages": [{"role": "user", "content": "\ud83d"}]}',
            "messages[0].content",
            "half of a surrogate pair",
        ),
        ('{"temperature": NaN}', "temperature", "`temperature`: the number is not finite"),
        ('{"temperature": 1e999}', "temperature", "`temperature`: the number is not finite"),
        ('{"temperature": 1,}', None, "the body is not valid JSON"),
    ],
)
async def test_values_that_json_cannot_express_are_refused_by_name(
    client: Client, body: str, param: str | None, words: str
) -> None:
    reply = await post(client, "/v1/chat/completions", body.encode())
    assert reply.status_code == 400, reply.text
    assert reply.json()["error"]["param"] == param
    assert words in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b" \n", "the body is empty"),
        (b'{"messages": "\xff"}', "the body is not UTF-8 (byte 14)"),
        (gzip.compress(b"{}"), "without compression"),
        ("{}".encode("utf-16"), "the body is not UTF-8 (byte 0)"),
    ],
)
async def test_bodies_that_are_no_text(client: Client, body: bytes, words: str) -> None:
    reply = await post(client, "/v1/chat/completions", body)
    assert reply.status_code == 400 and words in reply.json()["error"]["message"], reply.text


def test_a_byte_order_mark_is_skipped() -> None:
    assert decode_object(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
