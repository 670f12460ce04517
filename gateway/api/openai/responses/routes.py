"""POST /v1/responses, as OpenAI's clients know it, without anything stored."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request
from starlette.types import ASGIApp

from gateway.api.http.endpoint import JSON, SSE, Endpoint, json_reply
from gateway.api.openai.chat.tools import host_choice, host_tools
from gateway.api.openai.generation import Numbered, check_ended, checked, collect, has_begun, to_call
from gateway.api.openai.models import check_model
from gateway.api.openai.responses.bodies import (
    JsonObjectFormat,
    JsonSchemaFormat,
    ResponsesNamedTool,
    ResponsesRequest,
    TextConfig,
    TextFormat,
    parse_responses,
)
from gateway.api.openai.responses.items import host_messages
from gateway.api.openai.responses.output import Output
from gateway.api.openai.responses.replies import (
    Completed,
    Created,
    Failed,
    Incomplete,
    IncompleteDetails,
    InProgress,
    ResponseError,
    ResponseEvent,
    ResponseReply,
    ResponseUsage,
)
from gateway.api.recording.generations import logged_generations
from gateway.api.services import caller_of, services_of
from gateway.api.streaming.streams import Relay, StreamReply, known_error, sse, until_disconnect
from gateway.base.errors import HearthError
from gateway.inference.interface import GenerateCall


async def responses(request: Request) -> ASGIApp:
    """A response to text, messages and results of tools; whole or streamed. Nothing is stored."""
    services = services_of(request)
    body = parse_responses(await request.body())
    check_model(services, body.model)
    request_id = request.state.request_id
    call = _to_call(body, request_id, caller_of(request).owner)
    relay: Relay[Numbered] = Relay(logged_generations(services, [call], body.user), services.drain)
    beginning = _beginning(body, call, services.model.name)
    output = Output(request_id)
    if body.stream:
        return StreamReply(relay, lambda items: _events(items, beginning, output), hold=has_begun)
    await until_disconnect(request.receive, collect(relay, [output]))
    return json_reply(_ended(beginning, output))


def _to_call(body: ResponsesRequest, request_id: str, owner: str) -> GenerateCall:
    tools = host_tools(body.tools or [], "tools[{}]")
    choice = body.tool_choice
    named = choice.name if isinstance(choice, ResponsesNamedTool) else None
    return to_call(
        body,
        request_id,
        owner,
        messages=host_messages(body.instructions, body.input),
        max_tokens=body.max_output_tokens,
        json_schema=_schema(body),
        schema_field="text.format",
        tools=tools,
        tool_choice=host_choice(
            choice if isinstance(choice, str) else None, named, tools, "tool_choice.name"
        ),
        parallel_tool_calls=body.parallel_tool_calls is not False,
        logprobs=body.logprobs,
    )


def _schema(body: ResponsesRequest) -> dict[str, Any] | None:
    wanted = body.text.format if body.text is not None else None
    if isinstance(wanted, JsonSchemaFormat):
        return wanted.schema
    return {"type": "object"} if isinstance(wanted, JsonObjectFormat) else None


def _beginning(body: ResponsesRequest, call: GenerateCall, model: str) -> ResponseReply:
    """The response before there is any output."""
    return ResponseReply(
        id=f"resp_{call.id}",
        created_at=int(time.time()),
        instructions=body.instructions,
        max_output_tokens=body.max_output_tokens,
        metadata=body.metadata or {},
        model=model,
        parallel_tool_calls=call.parallel_tool_calls,
        temperature=call.sampling.temperature,
        text=body.text
        if body.text is not None and body.text.format is not None
        else TextConfig(TextFormat()),
        tool_choice=body.tool_choice or "auto",
        tools=body.tools or [],
        top_logprobs=body.top_logprobs or 0,
        top_p=call.sampling.top_p,
        user=body.user,
    )


def _ended(beginning: ResponseReply, output: Output) -> ResponseReply:
    """The response with all its output."""
    assert output.end is not None
    cut = output.end.reason == "length"
    return replace(
        beginning,
        completed_at=int(time.time()),
        status="incomplete" if cut else "completed",
        incomplete_details=IncompleteDetails() if cut else None,
        output=output.items,
        usage=ResponseUsage.of(output.end),
    )


async def _events(relay: Relay[Numbered], beginning: ResponseReply, output: Output) -> AsyncIterator[bytes]:
    """The events, numbered; an error after the start is a ``response.failed``."""
    number = 0

    def encoded(events: Iterable[ResponseEvent]) -> bytes:
        nonlocal number
        lines = []
        for event in events:
            event.sequence_number = number
            number += 1
            lines.append(sse(event, str(event.__struct_config__.tag)))
        return b"".join(lines)

    try:
        yield encoded([Created(response=beginning), InProgress(response=beginning)])
        async for _, event in relay:
            if made := encoded(output.take(checked(event))):
                yield made
        check_ended([output])
        whole = _ended(beginning, output)
        last = Incomplete if whole.status == "incomplete" else Completed
        yield encoded([last(response=whole)])
    except Exception as error:
        yield encoded([Failed(response=_failed(beginning, output, known_error(error)))])


def _failed(beginning: ResponseReply, output: Output, error: HearthError) -> ResponseReply:
    return replace(
        beginning,
        status="failed",
        error=ResponseError(error.code, error.message),
        output=output.broken_off(),
    )


ENDPOINTS = (
    Endpoint("POST", "/v1/responses", responses, "user", (JSON,), ResponsesRequest, ResponseReply, SSE),
)
