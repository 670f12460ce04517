"""Anthropic's Messages API: POST /v1/messages and its token count."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from sse_starlette import ServerSentEvent
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gateway.api.anthropic.bodies import CountTokensBody, MessagesBody, parse_messages, parse_prompt
from gateway.api.anthropic.prompt import host_messages, host_tools, tool_settings
from gateway.api.anthropic.replies import AnthropicMessageReply, AnthropicUsage, Ping, TokenCount
from gateway.api.anthropic.stream import stream_events, whole_message
from gateway.api.http.dialect import ANTHROPIC
from gateway.api.http.endpoint import JSON, SSE, Endpoint, json_reply
from gateway.api.openai.models import check_model
from gateway.api.recording.generations import logged_generation
from gateway.api.services import caller_of, services_of
from gateway.api.streaming.streams import Relay, StreamReply, event_stream, known_error, sse, until_disconnect
from gateway.base.errors import HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent, LoadProgress
from model_host.protocol import Sampling

_PING = ServerSentEvent(event="ping", data=msgspec.json.encode(Ping()).decode(), sep="\n")


async def messages(request: Request) -> ASGIApp:
    """The next message of a conversation, whole or streamed."""
    services = services_of(request)
    body = parse_messages(await request.body())
    check_model(services, body.model)
    request_id: str = request.state.request_id
    call = _call(body, request_id, caller_of(request).owner)
    user = body.metadata.user_id if body.metadata is not None else None
    relay: Relay[GenerationEvent] = Relay(logged_generation(services, call, user), services.drain)
    nothing_yet = AnthropicUsage(input_tokens=0, cache_read_input_tokens=0, output_tokens=0)
    message = AnthropicMessageReply(id=f"msg_{request_id}", model=services.model.name, usage=nothing_yet)
    if body.stream:
        return StreamReply(
            relay,
            lambda items: _encoded(items, message, request_id),
            hold=_has_begun,
            response=lambda events: event_stream(events, _PING),
        )
    return json_reply(await until_disconnect(request.receive, _whole(relay, message)))


async def count_tokens(request: Request) -> Response:
    """How many tokens a prompt is, template included. Starts the model when it is not loaded."""
    services = services_of(request)
    body = parse_prompt(await request.body())
    check_model(services, body.model)
    counting = services.inference.count_prompt(host_messages(body), tools=host_tools(body))
    return json_reply(TokenCount(await until_disconnect(request.receive, counting)))


def _call(body: MessagesBody, request_id: str, owner: str) -> GenerateCall:
    names = ("temperature", "top_k", "top_p")
    given = {name: value for name in names if (value := getattr(body, name)) is not None}
    wanted = body.output_config.format if body.output_config is not None else None
    return GenerateCall(
        id=request_id,
        messages=host_messages(body),
        max_tokens=body.max_tokens,
        sampling=Sampling(**given),
        stop=body.stop_sequences or [],
        json_schema=wanted.schema if wanted is not None else None,
        schema_field="output_config.format",
        owner=owner,
        **tool_settings(body),
    )


def _has_begun(event: GenerationEvent) -> bool:
    return not isinstance(event, LoadProgress)


async def _whole(relay: Relay[GenerationEvent], message: AnthropicMessageReply) -> AnthropicMessageReply:
    async with relay:
        made = await whole_message(stream_events(relay, message))
    if made is None:
        raise HearthError("the generation ended without a result")
    return made


async def _encoded(
    relay: Relay[GenerationEvent], message: AnthropicMessageReply, request_id: str
) -> AsyncIterator[bytes]:
    """The events; an error after the start is the last one."""
    try:
        async for event in stream_events(relay, message):
            yield sse(event, str(event.__struct_config__.tag))
    except Exception as error:
        yield sse(ANTHROPIC.envelope(known_error(error), request_id), "error")


ENDPOINTS = (
    Endpoint("POST", "/v1/messages", messages, "user", (JSON,), MessagesBody, AnthropicMessageReply, SSE),
    Endpoint("POST", "/v1/messages/count_tokens", count_tokens, "user", (JSON,), CountTokensBody, TokenCount),
)
