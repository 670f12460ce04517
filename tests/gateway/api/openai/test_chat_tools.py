"""Tools, log-probabilities and several choices of POST /v1/chat/completions, with a scripted model."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.cli.common.files import opened_database
from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from gateway.store.request_log import RequestRecord, get_record
from model_host.protocol import Message, Tool, ToolCall, ToolDelta
from tests.gateway.api.conftest import Client
from tests.gateway.api.scripted import ScriptedInference

ADD: dict[str, Any] = {
    "type": "function",
    "function": {"name": "add", "description": "Adds", "parameters": {"type": "object"}, "strict": True},
}
NOW: dict[str, Any] = {"type": "function", "function": {"name": "now"}}
HI = {"role": "user", "content": "hi"}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": [1, "x"]}'}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "2"}]}


def two_calls(call: GenerateCall) -> list[str | ToolDelta]:
    return [
        ToolDelta(call.id, 0, "call_a", "add", ""),
        ToolDelta(call.id, 0, None, None, '{"a":'),
        ToolDelta(call.id, 0, None, None, "1}"),
        ToolDelta(call.id, 1, "call_b", "now", "{}"),
    ]


async def post(client: Client, **fields: Any) -> Any:
    reply = await client.post("/v1/chat/completions", json={"messages": [HI]} | fields)
    return reply.json()


async def chunks_of(client: Client, **fields: Any) -> list[Any]:
    body = {"messages": [HI], "stream": True} | fields
    reply = await client.post("/v1/chat/completions", json=body)
    lines = [line.removeprefix("data: ") for line in reply.text.splitlines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


async def recorded(settings: Settings, reply_id: str) -> RequestRecord:
    """The record of a reply's request in the request log."""
    with opened_database(settings.data_dir / "hearth.db") as database:
        request_id = reply_id.removeprefix("chatcmpl-")
        return await database.read(lambda connection: get_record(connection, request_id))


# --------------------------------------------------------------------------- calls of the model


async def test_tools_and_their_choice_reach_the_model(client: Client, inference: ScriptedInference) -> None:
    named = {"type": "function", "function": {"name": "now"}}
    for choice, meant in (
        (None, "auto"),
        ("required", "required"),
        ("none", "none"),
        (named, "function:now"),
    ):
        await post(client, tools=[ADD, NOW], tool_choice=choice, parallel_tool_calls=False)
        call = inference.calls[-1]
        assert call.tools == [Tool("add", "Adds", {"type": "object"}, True), Tool("now")]
        assert (call.tool_choice, call.parallel_tool_calls) == (meant, False)


async def test_calls_and_results_reach_the_model(client: Client, inference: ScriptedInference) -> None:
    answer = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [CALL]}
    await post(client, messages=[HI, answer, RESULT, HI])
    assert inference.calls[-1].messages == [
        Message("user", "hi"),
        Message("assistant", "", tool_calls=[ToolCall("c1", "add", {"a": [1, "x"]})]),
        Message("tool", "2", tool_call_id="c1", name="add"),
        Message("user", "hi"),
    ]


CALLED = {"role": "assistant", "tool_calls": [CALL]}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"messages": [HI, {"role": "assistant", "content": None}]}, "messages[1].content"),
        ({"messages": [{"role": "user", "content": "x", "tool_calls": [CALL]}]}, "messages[0].tool_calls"),
        ({"messages": [HI, CALLED]}, "messages"),
        ({"messages": [HI, CALLED, HI]}, "messages[2]"),
        ({"messages": [HI, CALLED, RESULT | {"tool_call_id": "c2"}]}, "messages[2].tool_call_id"),
        ({"messages": [HI, CALLED, RESULT, RESULT]}, "messages[3].tool_call_id"),
        ({"messages": [HI, CALLED, RESULT | {"name": "other"}]}, "messages[2].name"),
        ({"messages": [HI, {"role": "assistant", "tool_calls": [CALL, CALL]}]}, "messages[1].tool_calls"),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [CALL | {"function": {"name": "f", "arguments": "["}}],
                    }
                ]
            },
            "messages[0].tool_calls[0].function.arguments",
        ),
        ({"tools": [NOW, NOW]}, "tools[1].function.name"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "string"}}}]},
            "tools[0].function.parameters",
        ),
        ({"tools": [NOW] * 129}, "tools"),
        ({"tools": [NOW], "tool_choice": "any"}, "tool_choice"),
        (
            {"tools": [NOW], "tool_choice": {"type": "function", "function": {"name": "add"}}},
            "tool_choice.function.name",
        ),
        ({"tools": [NOW], "response_format": {"type": "json_object"}}, "tools"),
        ({"tools": [NOW], "grammar": 'root ::= "a"'}, "tools"),
    ],
)
async def test_refusals_name_the_field(
    client: Client, inference: ScriptedInference, fields: dict[str, Any], param: str
) -> None:
    error = (await post(client, **fields))["error"]
    assert error["param"] == param
    assert param in error["message"]
    assert inference.calls == []


# --------------------------------------------------------------------------- calls


async def test_a_reply_of_calls(client: Client, inference: ScriptedInference) -> None:
    inference.script = two_calls
    (choice,) = (await post(client, tools=[ADD, NOW]))["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "tool_calls": [
            {"id": "call_a", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}},
            {"id": "call_b", "type": "function", "function": {"name": "now", "arguments": "{}"}},
        ],
    }


async def test_calls_in_a_stream(client: Client, inference: ScriptedInference) -> None:
    inference.script = two_calls
    chunks = await chunks_of(client, tools=[ADD, NOW])
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert deltas[1:-1] == [
        {
            "tool_calls": [
                {"index": 0, "id": "call_a", "type": "function", "function": {"name": "add", "arguments": ""}}
            ]
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
        {
            "tool_calls": [
                {
                    "index": 1,
                    "id": "call_b",
                    "type": "function",
                    "function": {"name": "now", "arguments": "{}"},
                }
            ]
        },
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


async def test_calls_are_in_the_request_log(
    client: Client, inference: ScriptedInference, settings: Settings
) -> None:
    inference.script = two_calls
    body = await post(client, tools=[ADD, NOW], tool_choice="required")
    record = await recorded(settings, body["id"])
    assert record.answer == 'add {"a":1}\nnow {}'
    obeyed = record.generations[0].obeyed
    assert [tool["name"] for tool in obeyed["tools"]] == ["add", "now"]
    assert (obeyed["tool_choice"], obeyed["parallel_tool_calls"]) == ("required", True)


# --------------------------------------------------------------------------- several choices


async def test_several_choices(client: Client, inference: ScriptedInference, settings: Settings) -> None:
    inference.script = lambda call: [f"seed {call.sampling.seed}", "!"]
    body = await post(client, n=3, seed=2**32 - 3)
    assert [choice["index"] for choice in body["choices"]] == [0, 1, 2]
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert texts == ["seed 4294967293!", "seed 4294967294!", "seed 0!"]
    assert body["usage"]["completion_tokens"] == 6
    assert body["usage"]["prompt_tokens"] == 5, "the prompt is read once"
    record = await recorded(settings, body["id"])
    assert [made.sampling["seed"] for made in record.generations] == [4294967293, 4294967294, 0]
    assert record.answer == "\n\n".join(texts)


async def test_several_choices_in_a_stream(client: Client, inference: ScriptedInference) -> None:
    inference.delay = 0.01
    chunks = await chunks_of(client, n=3, stream_options={"include_usage": True})
    assert [chunk["choices"][0]["index"] for chunk in chunks[:3]] == [0, 1, 2]
    assert all(chunk["choices"][0]["delta"]["role"] == "assistant" for chunk in chunks[:3])
    order = [chunk["choices"][0]["index"] for chunk in chunks[3:-1]]
    assert order != sorted(order), "the choices come side by side"
    for index in range(3):
        own = [c["choices"][0] for c in chunks[:-1] if c["choices"][0]["index"] == index]
        assert "".join(c["delta"].get("content", "") for c in own) == "Chris Pressey created Befunge [1]."
        assert [c["finish_reason"] for c in own] == [None] * (len(own) - 1) + ["stop"]
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 15


async def test_an_error_in_one_choice_ends_them_all(client: Client, inference: ScriptedInference) -> None:
    inference.error, inference.error_after = RuntimeError("broken"), 2
    reply = await client.post("/v1/chat/completions", json={"messages": [HI], "n": 4})
    assert reply.status_code == 500
    assert (inference.running, inference.finished) == (0, 0)


# --------------------------------------------------------------------------- log-probabilities


async def test_log_probabilities_are_asked_for(client: Client, inference: ScriptedInference) -> None:
    for fields, meant in (
        ({}, None),
        ({"logprobs": False}, None),
        ({"logprobs": True}, 0),
        ({"logprobs": True, "top_logprobs": 20}, 20),
    ):
        body = await post(client, **fields)
        assert inference.calls[-1].logprobs == meant
        assert body["choices"][0]["logprobs"] is None, "the script has none"
