"""Tokens, tools and prompts through a real model host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.base.errors import InvalidRequestError
from gateway.config.settings import ModelSettings
from gateway.inference.host import HostInference
from gateway.inference.interface import GenerateCall, Inference
from gateway.models.catalog import ResolvedModel
from model_host.protocol import Finished, Message, Tool, ToolDelta
from tests.gateway.inference.helpers import collect

HI = [Message("user", "hi")]


@pytest.fixture
async def host(tool_models: dict[str, Path]) -> AsyncIterator[HostInference]:
    path = tool_models["gemma"]
    model = ResolvedModel(name="tiny", path=path, size_bytes=1, ram_bytes=1, context=2048)
    made = HostInference(model, ModelSettings(threads=1, memory_headroom_bytes=0))
    yield made
    await made.close()


async def test_tokens_and_text(host: HostInference) -> None:
    inference: Inference = host
    text = "Befunge <turn|> €"
    tokens = await inference.tokenize(text)
    assert len(tokens) == (await inference.count([text]))[0]
    assert await inference.detokenize(tokens) == text
    assert await inference.detokenize([]) == ""
    with pytest.raises(InvalidRequestError, match="vocabulary"):
        await inference.detokenize([10**6])
    assert host.health().open_requests == 0


async def test_tools_are_told_counted_and_called(host: HostInference) -> None:
    tools = [Tool("now", "The time")]
    assert await host.count_prompt(HI, tools=tools) > await host.count_prompt(HI) + 5
    call = GenerateCall(id="r", messages=HI, tools=tools, tool_choice="function:now", max_tokens=60)
    events = await collect(host, call)
    pieces = [event for event in events if isinstance(event, ToolDelta)]
    assert "".join(piece.arguments for piece in pieces) == "{}"
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "tool_calls"


async def test_what_the_host_refuses_names_the_field(host: HostInference) -> None:
    odd = Tool("odd", "", {"type": "object", "properties": {"a": {"not": {}}}}, strict=True)
    for tools, param, code in (([odd], "tools", "bad_grammar"), ([odd, odd], None, "bad_request")):
        with pytest.raises(InvalidRequestError) as refused:
            await collect(host, GenerateCall(id="r", messages=HI, tools=tools, tool_choice="required"))
        assert (refused.value.param, refused.value.code) == (param, code)
