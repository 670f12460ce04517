"""Tool calls with Ollama's and Anthropic's official clients."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anthropic
import ollama
import pytest

from gateway.inference.interface import GenerateCall
from model_host.protocol import ToolDelta
from tests.gateway.api.conftest import LiveServer
from tests.gateway.api.scripted import ScriptedInference

HI: list[Any] = [{"role": "user", "content": "Add 1 and 2, and 3 and 4."}]


def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
      a: the first
      b: the second
    """
    return a + b


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOL: Any = {"name": "add", "description": "Add two numbers.", "input_schema": SCHEMA}


def two_calls(call: GenerateCall) -> list[str | ToolDelta]:
    return [
        "Let me see. ",
        ToolDelta(call.id, 0, "call-a", "add", '{"a":'),
        ToolDelta(call.id, 0, None, None, "1,"),
        ToolDelta(call.id, 0, None, None, '"b":2}'),
        ToolDelta(call.id, 1, "call-b", "add", '{"a":3,"b":4}'),
    ]


def cut_off(call: GenerateCall) -> list[str | ToolDelta]:
    return [ToolDelta(call.id, 0, "call-a", "add", '{"a":')]


def without_arguments(call: GenerateCall) -> list[str | ToolDelta]:
    return [ToolDelta(call.id, 0, "call-a", "now", "")]


@pytest.fixture
async def llama(server: LiveServer) -> AsyncIterator[ollama.AsyncClient]:
    async with ollama.AsyncClient(host=server.url) as made:
        yield made


@pytest.fixture
async def claude(server: LiveServer) -> AsyncIterator[anthropic.AsyncAnthropic]:
    async with anthropic.AsyncAnthropic(base_url=server.url, api_key="none", max_retries=0) as made:
        yield made


def called(message: ollama.Message) -> list[tuple[str, Any]]:
    return [(c.function.name, dict(c.function.arguments)) for c in message.tool_calls or []]


async def test_ollama(llama: ollama.AsyncClient, inference: ScriptedInference) -> None:
    inference.script = two_calls
    reply = await llama.chat("default", HI, tools=[add])
    assert (reply.message.content, reply.done_reason) == ("Let me see. ", "stop")
    assert called(reply.message) == [("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})]
    (tool,) = inference.calls[0].tools
    assert (tool.name, tool.description) == ("add", "Add two numbers.")
    assert tool.parameters["properties"]["a"]["type"] == "integer"

    results = [{"role": "tool", "content": str(n), "tool_name": "add"} for n in (3, 7)]
    await llama.chat("default", [*HI, reply.message, *results], tools=[add])
    _, asked, first, second = inference.calls[1].messages or []
    assert [call.arguments for call in asked.tool_calls] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert [(m.content, m.tool_call_id) for m in (first, second)] == [
        ("3", asked.tool_calls[0].id),
        ("7", asked.tool_calls[1].id),
    ]


async def test_ollama_streams_whole_calls(llama: ollama.AsyncClient, inference: ScriptedInference) -> None:
    inference.script = two_calls
    lines = [line async for line in await llama.chat("default", HI, tools=[add], stream=True)]
    assert [(line.message.content, called(line.message)) for line in lines] == [
        ("Let me see. ", []),
        ("", [("add", {"a": 1, "b": 2})]),
        ("", [("add", {"a": 3, "b": 4})]),
        ("", []),
    ]


async def test_ollama_shows_a_cut_off_call_as_text(
    llama: ollama.AsyncClient, inference: ScriptedInference
) -> None:
    inference.script = cut_off
    reply = await llama.chat("default", HI, tools=[add], options={"num_predict": 1})
    assert (reply.message.content, reply.message.tool_calls) == ('add {"a":', None)
    assert reply.done_reason == "length"
    inference.script = without_arguments
    assert called((await llama.chat("default", HI, tools=[add])).message) == [("now", {})]


async def test_anthropic(claude: anthropic.AsyncAnthropic, inference: ScriptedInference) -> None:
    inference.script = two_calls
    reply = await claude.messages.create(model="default", max_tokens=99, messages=HI, tools=[TOOL])
    text, first, second = reply.content
    assert (text.type, first.type, second.type) == ("text", "tool_use", "tool_use")
    assert first.type == second.type == "tool_use"
    assert (first.id, first.name, first.input) == ("call-a", "add", {"a": 1, "b": 2})
    assert (second.id, second.input) == ("call-b", {"a": 3, "b": 4})
    assert reply.stop_reason == "tool_use"

    results: Any = [{"type": "tool_result", "tool_use_id": c, "content": "3"} for c in ("call-a", "call-b")]
    history: list[Any] = [*HI, {"role": "assistant", "content": reply.content}]
    await claude.messages.create(
        model="default", max_tokens=9, messages=[*history, {"role": "user", "content": results}], tools=[TOOL]
    )
    _, asked, one, two = inference.calls[1].messages or []
    assert [call.id for call in asked.tool_calls] == ["call-a", "call-b"]
    assert [(m.role, m.tool_call_id, m.name) for m in (one, two)] == [
        ("tool", "call-a", "add"),
        ("tool", "call-b", "add"),
    ]


async def test_anthropic_streams_pieces(
    claude: anthropic.AsyncAnthropic, inference: ScriptedInference
) -> None:
    inference.script = two_calls
    pieces = []
    async with claude.messages.stream(model="default", max_tokens=99, messages=HI, tools=[TOOL]) as stream:
        async for event in stream:
            if event.type == "input_json":
                pieces.append(event.partial_json)
        reply = await stream.get_final_message()
    assert pieces == ['{"a":', "1,", '"b":2}', '{"a":3,"b":4}']
    assert [block.type for block in reply.content] == ["text", "tool_use", "tool_use"]
    assert reply.content[1].type == "tool_use"
    assert reply.content[1].input == {"a": 1, "b": 2}
    assert reply.stop_reason == "tool_use"


async def test_anthropic_shows_a_cut_off_call_as_text(
    claude: anthropic.AsyncAnthropic, inference: ScriptedInference
) -> None:
    inference.script = cut_off
    reply = await claude.messages.create(model="default", max_tokens=1, messages=HI, tools=[TOOL])
    (block,) = reply.content
    assert block.type == "text"
    assert (block.text, reply.stop_reason) == ('add {"a":', "max_tokens")
