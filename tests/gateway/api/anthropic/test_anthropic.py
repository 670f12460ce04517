"""Anthropic's bodies: each field is honoured or refused by name; blocks become turns."""

from __future__ import annotations

from typing import Any

import pytest

from model_host.protocol import Message
from tests.gateway.api.conftest import Client
from tests.gateway.api.scripted import ScriptedInference

HI: list[Any] = [{"role": "user", "content": "hi"}]
TOOL = {"name": "add", "description": "adds", "input_schema": {"type": "object"}}
CACHE = {"type": "ephemeral"}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "add", "input": {"a": 1}}


def result(call_id: str, content: Any = "2", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


async def post(client: Client, **fields: Any) -> Any:
    return await client.post(
        "/v1/messages", json={"model": "default", "max_tokens": 9, "messages": HI, **fields}
    )


def plain(message: Message) -> tuple[Any, ...]:
    calls = [(call.id, call.name, call.arguments) for call in message.tool_calls]
    return message.role, message.content, calls, message.tool_call_id, message.name


async def test_blocks_become_turns(client: Client, inference: ScriptedInference) -> None:
    messages = [
        {"role": "user", "content": [text("one "), text("two", cache_control=CACHE)]},
        {"role": "user", "content": "three"},
        {"role": "assistant", "content": [text("calling"), use("c1"), use("c2")]},
        {
            "role": "user",
            "content": [result("c2", [text("3")]), result("c1", is_error=True), text("and?", citations=[])],
        },
    ]
    reply = await post(client, messages=messages, system=[text("Be "), text("brief.", cache_control=CACHE)])
    assert reply.status_code == 200
    assert [plain(message) for message in inference.calls[0].messages or []] == [
        ("system", "Be brief.", [], None, None),
        ("user", "one two\n\nthree", [], None, None),
        ("assistant", "calling", [("c1", "add", {"a": 1}), ("c2", "add", {"a": 1})], None, None),
        ("tool", "3", [], "c2", "add"),
        ("tool", "error: 2", [], "c1", "add"),
        ("user", "and?", [], None, None),
    ]


async def test_results_alone_are_no_turn_of_the_user(client: Client, inference: ScriptedInference) -> None:
    messages = [
        *HI,
        {"role": "assistant", "content": [use("c1")]},
        {"role": "user", "content": [result("c1")]},
    ]
    assert (await post(client, messages=messages)).status_code == 200
    assert [m.role for m in inference.calls[0].messages or []] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    ("choice", "wanted", "parallel"),
    [
        ({"type": "auto"}, "auto", True),
        ({"type": "any", "disable_parallel_tool_use": True}, "required", False),
        ({"type": "tool", "name": "add"}, "function:add", True),
        ({"type": "none"}, "none", True),
    ],
)
async def test_tools(
    client: Client, inference: ScriptedInference, choice: dict[str, Any], wanted: str, parallel: bool
) -> None:
    tools = [{**TOOL, "type": "custom", "cache_control": CACHE, "defer_loading": False}]
    assert (await post(client, tools=tools, tool_choice=choice)).status_code == 200
    (call,) = inference.calls
    (tool,) = call.tools or []
    assert (tool.name, tool.description, tool.parameters) == ("add", "adds", {"type": "object"})
    assert (call.tool_choice, call.parallel_tool_calls) == (wanted, parallel)


@pytest.mark.parametrize(
    "fields",
    [
        {"thinking": {"type": "disabled"}},
        {"service_tier": "auto"},
        {"metadata": {}},
        {"tools": []},
        {"tool_choice": {"type": "auto"}},
        {"mcp_servers": [], "container": None, "output_config": {"format": None, "effort": None}},
        {"cache_control": {"type": "ephemeral", "ttl": "1h"}},
        {"cache_control": {"type": "ephemeral", "ttl": None}},
        {"system": ""},
    ],
)
async def test_neutral_fields_are_accepted(client: Client, fields: dict[str, Any]) -> None:
    assert (await post(client, **fields)).status_code == 200


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temprature": 1}, "temprature"),
        ({"temperature": 6}, "temperature"),
        ({"output_config": {"format": {"type": "xml", "schema": {}}}}, "output_config.format.type"),
        ({"output_config": {"format": {"type": "json_schema"}}}, "output_config.format.schema"),
        (
            {"output_config": {"format": {"type": "json_schema", "schema": {}}}, "tools": [TOOL]},
            "output_config.format",
        ),
        ({"metadata": {"user_id": 5}}, "metadata.user_id"),
        ({"stop_sequences": [""]}, "stop_sequences[0]"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [use("c")]}]}, "messages[0].content[0]"),
        (
            {"messages": [*HI, {"role": "assistant", "content": [result("c")]}, *HI]},
            "messages[1].content[0]",
        ),
        ({"messages": [{"role": "user", "content": [result("c")]}]}, "messages[0].content[0].tool_use_id"),
        (
            {
                "messages": [
                    {"role": "assistant", "content": [use("c")]},
                    {"role": "user", "content": [text("x"), result("c")]},
                ]
            },
            "messages[1].content[1]",
        ),
        ({"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0].type"),
        ({"tools": [{**TOOL, "defer_loading": True}]}, "tools[0].defer_loading"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "sub"}}, "tool_choice.name"),
    ],
)
async def test_refusals_name_the_field(
    client: Client, inference: ScriptedInference, fields: dict[str, Any], named: str
) -> None:
    reply = await post(client, **fields)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert f"`{named}" in error["message"]
    assert inference.calls == []


async def test_counting_takes_no_sampling(client: Client) -> None:
    body = {"model": "default", "messages": HI, "temperature": 1}
    reply = await client.post("/v1/messages/count_tokens", json=body)
    assert "`temperature`" in reply.json()["error"]["message"]
