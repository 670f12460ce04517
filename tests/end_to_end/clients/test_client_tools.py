"""Tools through the whole program, as the clients of Ollama and Anthropic use them. Random weights call at random."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import ollama
import pytest

from tests.end_to_end.server import Server

HI: list[Any] = [{"role": "user", "content": "paint it"}]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"color": {"type": "string", "enum": ["red", "green"]}},
    "required": ["color"],
    "additionalProperties": False,
}
PAINT: Any = {"name": "paint", "description": "Paint it.", "input_schema": SCHEMA}
NOTHING = {"type": "object", "properties": {}, "additionalProperties": False}
STOP: Any = {"name": "stop", "description": "Stop.", "input_schema": NOTHING}


@pytest.fixture(scope="module", params=["hermes", "gemma", "tagged"])
def server(
    tmp_path_factory: pytest.TempPathFactory, tool_models: dict[str, Path], request: pytest.FixtureRequest
) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("tools") / "data", tool_models[request.param])
    yield server
    assert server.stop() == 0


@pytest.fixture
def claude(server: Server) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as made:
        yield made


def the_call(reply: anthropic.types.Message) -> anthropic.types.ToolUseBlock:
    assert reply.stop_reason == "tool_use"
    block = reply.content[-1]
    assert block.type == "tool_use"
    return block


def test_a_forced_call_and_its_result(claude: anthropic.Anthropic) -> None:
    asked: Any = {"model": "default", "max_tokens": 400, "tools": [PAINT, STOP]}
    once = {"disable_parallel_tool_use": True}  # or random weights go on calling
    paint: Any = {"type": "tool", "name": "paint", **once}
    first = claude.messages.create(messages=HI, tool_choice=paint, **asked)
    call = the_call(first)
    assert (call.name, call.input["color"] in ("red", "green")) == ("paint", True)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "done"}
    history: Any = [
        *HI,
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": [result]},
    ]
    either: Any = {"type": "any", **once}
    with claude.messages.stream(messages=history, tool_choice=either, **asked) as stream:
        pieces = [event.partial_json for event in stream if event.type == "input_json"]
        second = stream.get_final_message()
    call = the_call(second)
    assert call.name in ("paint", "stop")
    assert pieces or call.input == {}


def test_counting_counts_the_tools(claude: anthropic.Anthropic) -> None:
    plain = claude.messages.count_tokens(model="default", messages=HI).input_tokens
    with_tools = claude.messages.count_tokens(model="default", messages=HI, tools=[PAINT]).input_tokens
    assert with_tools > plain + 10
    reply = claude.messages.create(model="default", max_tokens=1, messages=HI, tools=[PAINT])
    assert reply.usage.input_tokens + (reply.usage.cache_read_input_tokens or 0) == with_tools


def test_ollama(server: Server) -> None:
    with ollama.Client(host=server.url) as llama:
        tool = {
            "type": "function",
            "function": {"name": "paint", "description": "Paint it.", "parameters": SCHEMA},
        }
        options = {"num_predict": 40, "seed": 3}
        plain = llama.chat("default", HI, options=options)
        offered = llama.chat("default", HI, tools=[tool], options=options)
        assert offered.prompt_eval_count is not None
        assert plain.prompt_eval_count is not None
        assert offered.prompt_eval_count > plain.prompt_eval_count + 10
        assert llama.show("default").capabilities == ["completion", "tools"]
        called = {
            "role": "assistant",
            "tool_calls": [{"function": {"name": "paint", "arguments": {"color": "red"}}}],
        }
        done = {"role": "tool", "tool_name": "paint", "content": "done"}
        answered = llama.chat("default", [*HI, called, done], tools=[tool], options=options)
        assert answered.prompt_eval_count is not None
        assert answered.prompt_eval_count > offered.prompt_eval_count


def test_an_agent_over_a_long_session(claude: anthropic.Anthropic) -> None:
    """Each turn streams a call, answers it, and sends the whole history again; the prompts grow and stay cached."""
    history: list[Any] = list(HI)
    cached = []
    for turn in range(12):
        with claude.messages.stream(
            model="default",
            max_tokens=400,
            messages=history,
            tools=[PAINT, STOP],
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
        ) as stream:
            names = [event.type for event in stream]
            reply = stream.get_final_message()
        call = the_call(reply)
        assert names[0] == "message_start" and names[-1] == "message_stop"
        assert call.name == "stop" or call.input["color"] in ("red", "green")
        cached.append(reply.usage.cache_read_input_tokens or 0)
        result = {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": f"done {turn}",
            "is_error": turn == 3,
        }
        history += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": [result]}]
    assert cached[-1] > cached[1] > 0
