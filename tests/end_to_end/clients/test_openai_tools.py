"""Tools, choices and log-probabilities through the whole program, with OpenAI's client and random weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.end_to_end.server import Server
from tests.waiting import eventually

HI: list[Any] = [{"role": "user", "content": "What is the weather?"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a place",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1, "maxLength": 6},
                "unit": {"type": "string", "enum": ["celsius", "kelvin"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": False,
        },
        "strict": True,
    },
}
NOW: Any = {"type": "function", "function": {"name": "now"}}


@pytest.fixture(scope="module", params=["hermes", "gemma"])
def server(
    tmp_path_factory: pytest.TempPathFactory, tool_models: dict[str, Path], request: pytest.FixtureRequest
) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("openai-tools") / "data", tool_models[request.param])
    yield server
    assert server.stop() == 0


@pytest.fixture
def ai(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def check(call: Any) -> None:
    arguments = json.loads(call.function.arguments)
    assert call.type == "function"
    if call.function.name == "now":
        assert arguments == {}
    else:
        assert call.function.name == "get_weather"
        assert arguments.keys() == {"city", "unit"}
        assert arguments["unit"] in ("celsius", "kelvin")


def test_a_call_its_result_and_another_call(ai: openai.OpenAI) -> None:
    asked: Any = {"model": "default", "tools": [WEATHER, NOW], "max_tokens": 400, "seed": 5}
    choice: Any = {"type": "function", "function": {"name": "get_weather"}}
    first = ai.chat.completions.create(messages=HI, tool_choice=choice, **asked)
    assert first.choices[0].finish_reason == "tool_calls"
    message = first.choices[0].message
    assert message.content is None
    (call,) = message.tool_calls or []
    check(call)
    history: Any = [*HI, message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": "sunny"}]
    with ai.chat.completions.stream(
        messages=history, tool_choice="required", parallel_tool_calls=False, **asked
    ) as stream:
        done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        second = stream.get_final_completion().choices[0]
    assert second.finish_reason == "tool_calls"
    (call,) = second.message.tool_calls or []
    check(call)
    assert [event.name for event in done] == [call.function.name]


def test_parallel_calls_streamed(ai: openai.OpenAI) -> None:
    """Random weights go on after a call now and then; the pieces of each index make up one call."""
    most = 0
    for seed in range(12):
        stream = ai.chat.completions.create(
            model="default",
            messages=HI,
            tools=[NOW],
            tool_choice="required",
            stream=True,
            max_tokens=150,
            temperature=2.0,
            seed=seed,
        )
        calls: dict[int, list[str]] = {}
        reason = None
        for chunk in stream:
            reason = chunk.choices[0].finish_reason or reason
            for piece in chunk.choices[0].delta.tool_calls or []:
                assert piece.function is not None
                if piece.index not in calls:
                    assert (piece.type, piece.function.name) == ("function", "now")
                    assert piece.id
                calls.setdefault(piece.index, []).append(piece.function.arguments or "")
        complete = [*calls.values()] if reason == "tool_calls" else [*calls.values()][:-1]
        assert all(json.loads("".join(pieces)) == {} for pieces in complete)
        most = max(most, len(complete))
        if most >= 2:
            return
    raise AssertionError("never two calls in one reply")


def test_choices_of_the_same_seeds(ai: openai.OpenAI) -> None:
    asked: Any = {"model": "default", "messages": HI, "max_tokens": 8, "seed": 11, "temperature": 1.5}
    whole = ai.chat.completions.create(n=3, **asked)
    texts = [choice.message.content for choice in whole.choices]
    assert len(set(texts)) > 1
    streamed = ["", "", ""]
    for chunk in ai.chat.completions.create(n=3, stream=True, **asked):
        for choice in chunk.choices:
            streamed[choice.index] += choice.delta.content or ""
    assert len(set(streamed)) > 1
    assert whole.usage is not None
    assert whole.usage.prompt_tokens < 60
    single = ai.chat.completions.create(**asked)
    assert single.usage is not None
    assert single.usage.prompt_tokens == whole.usage.prompt_tokens


def test_a_client_that_leaves_ends_all_choices(server: Server, ai: openai.OpenAI) -> None:
    before = server.finished_tokens()
    stream = ai.chat.completions.create(
        model="default", messages=HI, n=4, stream=True, max_tokens=4000, extra_body={"ignore_eos": True}
    )
    seen = set()
    for chunk in stream:
        if chunk.choices[0].delta.content:
            seen.add(chunk.choices[0].index)
        if len(seen) == 4:
            break
    stream.close()
    eventually(lambda: server.health()["host"]["open_requests"] == 0, "the request did not end")
    assert server.finished_tokens() - before < 4000, "choices went on without a client"


def test_log_probabilities(ai: openai.OpenAI) -> None:
    reply = ai.chat.completions.create(
        model="default", messages=HI, max_tokens=10, temperature=0, logprobs=True, top_logprobs=3
    )
    choice = reply.choices[0]
    assert choice.logprobs is not None
    told = choice.logprobs.content or []
    assert (
        bytes(byte for one in told for byte in one.bytes or []).decode("utf-8", "replace")
        == choice.message.content
    )
    assert all(one.logprob == one.top_logprobs[0].logprob <= 0 for one in told)
    assert all(len(one.top_logprobs) == 3 for one in told)
    stream = ai.chat.completions.create(
        model="default", messages=HI, max_tokens=10, temperature=0, logprobs=True, top_logprobs=3, stream=True
    )
    streamed = [one for chunk in stream if (p := chunk.choices[0].logprobs) for one in p.content or []]
    assert [one.token for one in streamed] == [one.token for one in told]


def test_a_strict_schema_that_cannot_be_enforced_is_refused(ai: openai.OpenAI) -> None:
    parameters = {"type": "object", "properties": {"a": {"not": {}}}, "required": ["a"]}
    tool: Any = {"type": "function", "function": {"name": "odd", "parameters": parameters, "strict": True}}
    with pytest.raises(openai.BadRequestError) as bad:
        ai.chat.completions.create(model="default", messages=HI, tools=[tool], tool_choice="required")
    assert (bad.value.code, bad.value.param) == ("bad_grammar", "tools")


def test_a_template_without_tools(tmp_path: Path, tiny_model: Path) -> None:
    server = Server(tmp_path / "data", tiny_model)
    try:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as ai:
            reply = ai.chat.completions.create(
                model="default", messages=HI, tools=[NOW], tool_choice="required", parallel_tool_calls=False
            )
        assert reply.choices[0].finish_reason == "tool_calls"
    finally:
        server.stop()
