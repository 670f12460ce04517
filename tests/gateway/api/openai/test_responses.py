"""POST /v1/responses as OpenAI's official client uses it, against a real server."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseOutputMessage
from pydantic import BaseModel

from gateway.base.errors import ModelUnavailableError, OverloadedError
from gateway.inference.interface import GenerateCall
from model_host.protocol import Delta, Message, TokenLogprob, ToolCall, ToolDelta, TopLogprob
from tests.gateway.api.conftest import Client
from tests.gateway.api.scripted import ScriptedInference

ANSWER = "Chris Pressey created Befunge [1]."
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
TOOL: Any = {"type": "function", "name": "add", "description": "Add.", "parameters": SCHEMA, "strict": False}


class Place(BaseModel):
    city: str


def two_calls(call: GenerateCall) -> list[str | ToolDelta]:
    return [
        "Let me see. ",
        ToolDelta(call.id, 0, "call-a", "add", '{"a":'),
        ToolDelta(call.id, 0, None, None, "1}"),
        ToolDelta(call.id, 1, "call-b", "add", ""),
        ToolDelta(call.id, 1, None, None, '{"a":3}'),
    ]


async def test_text(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    reply = await ai.responses.create(
        model="default",
        input="hi",
        instructions="Be brief.",
        max_output_tokens=99,
        temperature=0.25,
        top_p=0.5,
        metadata={"a": "b"},
        user="u",
        store=False,
    )
    assert (reply.output_text, reply.status, reply.model) == (ANSWER, "completed", "scripted")
    assert reply.id == f"resp_{reply._request_id}"
    assert (reply.instructions, reply.max_output_tokens, reply.metadata) == ("Be brief.", 99, {"a": "b"})
    assert (reply.temperature, reply.top_p, reply.user) == (0.25, 0.5, "u")
    assert (reply.error, reply.incomplete_details, reply.previous_response_id) == (None, None, None)
    assert reply.store is False  # type: ignore[attr-defined]
    (item,) = reply.output
    assert isinstance(item, ResponseOutputMessage)
    assert (item.role, item.status, item.content[0].type) == ("assistant", "completed", "output_text")
    assert reply.usage is not None
    assert (reply.usage.output_tokens, reply.usage.input_tokens_details.cached_tokens) == (5, 2)
    assert reply.usage.total_tokens == reply.usage.input_tokens + 5
    (call,) = inference.calls
    assert call.messages == [Message("system", "Be brief."), Message("user", "hi")]
    assert (call.max_tokens, call.sampling.temperature, call.sampling.top_p) == (99, 0.25, 0.5)
    Response.model_validate(reply.model_dump())  # complete and of the right types


async def test_a_limit_makes_it_incomplete(ai: openai.AsyncOpenAI) -> None:
    reply = await ai.responses.create(model="default", input="hi", max_output_tokens=5)
    assert reply.status == "incomplete"
    assert reply.incomplete_details is not None
    assert reply.incomplete_details.reason == "max_output_tokens"
    assert isinstance(reply.output[0], ResponseOutputMessage)
    assert reply.output[0].status == "incomplete"


async def test_no_output_is_an_empty_message(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    inference.script = lambda call: []
    reply = await ai.responses.create(model="default", input="hi")
    assert isinstance(reply.output[0], ResponseOutputMessage)
    assert reply.output_text == ""


async def test_events(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    inference.script = two_calls
    stream = await ai.responses.create(model="default", input="hi", tools=[TOOL], stream=True)
    events = [event async for event in stream]
    message = ["output_item.added", "content_part.added", "output_text.delta", "output_text.done",
               "content_part.done", "output_item.done"]  # fmt: skip
    first = ["output_item.added", *["function_call_arguments.delta"] * 2, "function_call_arguments.done"]
    second = ["output_item.added", "function_call_arguments.delta", "function_call_arguments.done"]
    expected = [*message, *first, "output_item.done", *second, "output_item.done"]
    assert [event.type for event in events] == [
        f"response.{kind}" for kind in ("created", "in_progress", *expected, "completed")
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    last = events[-1]
    assert last.type == "response.completed"
    whole = await ai.responses.create(model="default", input="hi", tools=[TOOL])
    shown = [[item.type for item in reply.output] for reply in (last.response, whole)]
    assert shown == [["message", "function_call", "function_call"]] * 2
    calls = [item for item in whole.output if isinstance(item, ResponseFunctionToolCall)]
    assert [(c.call_id, c.name, c.arguments, c.status) for c in calls] == [
        ("call-a", "add", '{"a":1}', "completed"),
        ("call-b", "add", '{"a":3}', "completed"),
    ]
    indexes = {item.id: index for index, item in enumerate(last.response.output)}
    for event in events:
        if event.type == "response.function_call_arguments.done":
            assert indexes[event.item_id] == event.output_index


async def test_the_clients_own_accumulation(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    inference.script = two_calls
    async with ai.responses.stream(model="default", input="hi", tools=[TOOL]) as stream:
        async for _ in stream:
            pass
        reply = await stream.get_final_response()
    assert reply.output_text == "Let me see. "
    assert [item.type for item in reply.output] == ["message", "function_call", "function_call"]
    inference.script = lambda call: ["a"] * 3
    async with ai.responses.stream(model="default", input="hi", max_output_tokens=3) as stream:
        kinds = [event.type async for event in stream]
    assert kinds[-1] == "response.incomplete"


async def test_a_conversation_goes_on_with_the_output_as_it_came(
    ai: openai.AsyncOpenAI, inference: ScriptedInference
) -> None:
    inference.script = two_calls
    first = await ai.responses.create(model="default", input="hi", tools=[TOOL])
    history: list[Any] = [{"role": "user", "content": "hi"}, *first.output]
    results = [{"type": "function_call_output", "call_id": c, "output": c} for c in ("call-a", "call-b")]
    more = {"role": "user", "content": [{"type": "input_text", "text": "and?"}]}
    await ai.responses.create(model="default", input=[*history, *results, more], tools=[TOOL])
    calls = [ToolCall("call-a", "add", {"a": 1}), ToolCall("call-b", "add", {"a": 3})]
    assert inference.calls[-1].messages == [
        Message("user", "hi"),
        Message("assistant", "Let me see. ", tool_calls=calls),
        Message("tool", "call-a", tool_call_id="call-a", name="add"),
        Message("tool", "call-b", tool_call_id="call-b", name="add"),
        Message("user", "and?"),
    ]
    dumped: list[Any] = [item.model_dump() for item in first.output]
    await ai.responses.create(model="default", input=[*dumped, *results])


async def test_instructions_and_system_messages_are_one_turn(
    ai: openai.AsyncOpenAI, inference: ScriptedInference
) -> None:
    items: list[Any] = [{"role": "developer", "content": "two"}, {"role": "user", "content": "hi"}]
    await ai.responses.create(model="default", instructions="one", input=items)
    assert inference.calls[0].messages == [Message("system", "one\n\ntwo"), Message("user", "hi")]


async def test_formats(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    inference.script = lambda call: ['{"city"', ': "Paris"}']
    reply = await ai.responses.parse(model="default", input="hi", text_format=Place)
    assert reply.output_parsed == Place(city="Paris")
    (call,) = inference.calls
    assert isinstance(call.json_schema, dict)
    assert call.json_schema["properties"] == {"city": {"title": "City", "type": "string"}}
    await ai.responses.create(model="default", input="hi", text={"format": {"type": "json_object"}})
    await ai.responses.create(model="default", input="hi", text={"format": {"type": "text"}})
    assert [each.json_schema for each in inference.calls[1:]] == [{"type": "object"}, None]


async def test_tools(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    choice: Any = {"type": "function", "name": "add"}
    reply = await ai.responses.create(
        model="default", input="hi", tools=[TOOL], tool_choice=choice, parallel_tool_calls=False
    )
    assert (reply.tools[0].type, reply.parallel_tool_calls) == ("function", False)
    assert getattr(reply.tool_choice, "name", None) == "add"
    (call,) = inference.calls
    assert (call.tool_choice, call.parallel_tool_calls) == ("function:add", False)
    assert [(tool.name, tool.description, tool.parameters) for tool in call.tools] == [
        ("add", "Add.", SCHEMA)
    ]


async def test_calls_of_a_namespace_name_it(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    """Codex groups the tools of its agents, offers OpenAI's search of the web, and sends calls back as they came."""
    inference.script = two_calls
    plain = TOOL | {"name": "subtract"}
    tools: Any = [plain, {"type": "namespace", "name": "sums", "description": "Sums.", "tools": [TOOL]}]
    more: Any = {"client_metadata": {"turn_id": "1"}}
    reply = await ai.responses.with_raw_response.create(
        model="default", input="1+1?", tools=[*tools, {"type": "web_search"}], extra_body=more
    )
    assert reply.headers["x-hearth-ignored"] == "tools[].web_search, client_metadata"
    made: list[Any] = [*reply.parse().output]
    calls = made[1:]
    assert [(call.name, call.namespace) for call in calls] == [("add", "sums")] * 2
    assert [tool.name for tool in inference.calls[0].tools] == ["subtract", "add"]
    results: Any = [
        {"type": "function_call_output", "call_id": call.call_id, "output": "2"} for call in calls
    ]
    sent: Any = [{"role": "user", "content": "1+1?"}, *(item.model_dump() for item in made), *results]
    await ai.responses.create(model="default", input=sent, tools=tools)
    [_, turn, *_] = inference.calls[1].messages
    assert [call.name for call in turn.tool_calls or []] == ["add", "add"]
    with pytest.raises(openai.BadRequestError) as twice:
        await ai.responses.create(model="default", input="1+1?", tools=[TOOL, *tools])
    assert twice.value.param == "tools[2].tools[0].name"


async def test_logprobs(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    token = TokenLogprob("h", [104], -1.0, [TopLogprob("x", [120], -0.1)])
    inference.script = lambda call: [Delta(call.id, "h", 1, [token])]
    reply = await ai.responses.create(
        model="default", input="hi", include=["message.output_text.logprobs"], top_logprobs=1
    )
    assert isinstance(reply.output[0], ResponseOutputMessage)
    (part,) = reply.output[0].content
    assert part.type == "output_text"
    assert part.logprobs is not None
    assert (part.logprobs[0].token, part.logprobs[0].top_logprobs[0].logprob) == ("h", -0.1)
    assert inference.calls[0].logprobs == 1
    await ai.responses.create(model="default", input=[*reply.output, {"role": "user", "content": "x"}])


def message(**fields: Any) -> dict[str, Any]:
    return {"input": [{"role": "user", "content": "x"}, fields]}


CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "x"}


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"previous_response_id": ""}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"conversation": "c"}, "conversation"),
        ({"prompt": {"id": "p"}}, "prompt"),
        ({"include": ["file_search_call.results"]}, "include[0]"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"tools": [{"type": "file_search"}]}, "tools[0].type"),
        ({"tools": [TOOL, TOOL]}, "tools[1].name"),
        ({"tools": [{**TOOL, "parameters": {"type": "array"}}]}, "tools[0].parameters"),
        ({"tools": [TOOL], "text": {"format": {"type": "json_object"}}}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function", "name": "f"}}, "tool_choice.name"),
        ({"input": []}, "input"),
        ({"input": None}, "input"),
        ({"input": [5]}, "input[0]"),
        ({"metadata": {"a": 5}}, "metadata[...]"),
        (message(role="user", content=[{"type": "input_image", "image_url": "x"}]), "input[1].content[0].type"),
        (message(role="user", content=[{"type": "output_text", "text": "x"}]), "input[1].content[0].type"),
        (message(**RESULT), "input[1].call_id"),
        (message(**CALL), "input"),
        (message(**{**CALL, "arguments": "[]"}), "input[1].arguments"),
        ({"input": [CALL, CALL, RESULT]}, "input[1].call_id"),
        ({"input": [CALL, {"role": "user", "content": "x"}]}, "input[1]"),
        ({"input": [CALL, {**CALL, "call_id": "d"}, RESULT, {**CALL, "call_id": "e"}]}, "input[3]"),
        ({"messages": []}, "messages"),
    ],
)  # fmt: skip
async def test_what_cannot_be_honoured_is_refused_by_name(
    client: Client, inference: ScriptedInference, fields: dict[str, Any], param: str
) -> None:
    refused = await client.post("/v1/responses", json={"input": "x", **fields})
    error = refused.json()["error"]
    assert (refused.status_code in (400, 404), error["param"]) == (True, param), error
    assert inference.calls == []


async def test_what_asks_for_nothing_is_accepted(ai: openai.AsyncOpenAI) -> None:
    neutral = {
        "store": False, "background": False, "truncation": "disabled", "service_tier": "auto", "metadata": {},
        "reasoning": {"effort": None, "summary": None}, "text": {"verbosity": "medium"}, "include": [],
        "previous_response_id": None, "prompt": None, "tools": [], "tool_choice": "auto", "max_tool_calls": None,
        "stream_options": {"include_obfuscation": False},
    }  # fmt: skip
    reply = await ai.responses.create(model="default", input="x", extra_body=neutral)
    assert reply.output_text == ANSWER
    assert reply.text is not None
    assert reply.text.format is not None
    assert reply.text.format.type == "text"


async def test_errors(ai: openai.AsyncOpenAI, inference: ScriptedInference) -> None:
    with pytest.raises(openai.NotFoundError):
        await ai.responses.create(model="gpt-9", input="hi")
    inference.error = OverloadedError("full", retry_after=1)
    with pytest.raises(openai.InternalServerError):
        await ai.responses.create(model="default", input="hi", stream=True)
    inference.error, inference.error_after = ModelUnavailableError("the host died", retry_after=1), 2
    stream = await ai.responses.create(model="default", input="hi", stream=True)
    last = [event async for event in stream][-1]
    assert last.type == "response.failed"
    assert last.response.status == "failed"
    assert last.response.error is not None
    assert last.response.error.message == "the host died"
    assert isinstance(last.response.output[0], ResponseOutputMessage)
    assert last.response.output[0].status == "incomplete"
    assert last.response.output_text == "Chris Pressey "
