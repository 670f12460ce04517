"""POST /v1/chat/completions, as OpenAI's clients know it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp

from gateway.api.chat_log import logged_generation
from gateway.api.chat_reply import ChatReply
from gateway.api.chat_request import ChatRequest, parse_chat
from gateway.api.endpoint import JSON
from gateway.api.errors import envelope
from gateway.api.fields import parse_keep_alive
from gateway.api.models import check_model
from gateway.api.services import caller_of, services_of
from gateway.api.streams import Relay, StreamReply, known_error, sse, until_disconnect
from gateway.errors import HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent, Progress
from model_host.protocol import Delta, Finished, Message, Sampling

_DONE = b"data: [DONE]\n\n"


async def chat_completions(request: Request) -> ASGIApp:
    """One completion of a conversation, whole or streamed."""
    services = services_of(request)
    chat = parse_chat(await request.body())
    check_model(services, chat.model)
    request_id = request.state.request_id
    call = to_call(chat, request_id, caller_of(request).owner)
    source = logged_generation(services, call, chat.user)
    relay: Relay[GenerationEvent] = Relay(source, services.drain)
    reply = ChatReply(request_id, services.model.name)
    if chat.stream:
        options = chat.stream_options
        with_usage = options is not None and bool(options.include_usage)
        return StreamReply(
            relay, lambda items: _chunks(items, reply, request_id, with_usage), hold=_has_begun
        )
    text, end = await until_disconnect(request.receive, _collect(relay))
    return Response(msgspec.json.encode(reply.whole(text, end)), media_type=JSON)


def to_call(chat: ChatRequest, request_id: str, owner: str) -> GenerateCall:
    """The generation that the request asks for."""
    given = {
        name: value for name in Sampling.__struct_fields__ if (value := getattr(chat, name, None)) is not None
    }
    stop = [chat.stop] if isinstance(chat.stop, str) else (chat.stop or [])
    return GenerateCall(
        id=request_id,
        messages=[Message(message.host_role, message.text) for message in chat.messages],
        max_tokens=chat.max_completion_tokens or chat.max_tokens,
        sampling=Sampling(**given),
        stop=stop,
        grammar=chat.grammar,
        json_schema=_schema(chat),
        lane=chat.priority or "interactive",
        owner=owner,
        ignore_eos=bool(chat.ignore_eos),
        keep_alive=parse_keep_alive(chat.keep_alive),
    )


def _schema(chat: ChatRequest) -> dict[str, Any] | None:
    wanted = chat.response_format
    if wanted is None or wanted.type == "text":
        return None
    return wanted.json_schema.schema if wanted.json_schema is not None else {"type": "object"}


def _has_begun(event: GenerationEvent) -> bool:
    return not isinstance(event, Progress)


async def _collect(relay: Relay[GenerationEvent]) -> tuple[str, Finished]:
    pieces: list[str] = []
    async with relay:
        async for event in relay:
            if isinstance(event, Delta):
                pieces.append(event.text)
            elif isinstance(event, Finished):
                return "".join(pieces), _completed(event)
    raise HearthError("the generation ended without a result")


async def _chunks(
    relay: Relay[GenerationEvent], reply: ChatReply, request_id: str, with_usage: bool
) -> AsyncIterator[bytes]:
    """Chunks, then ``[DONE]``; an error after the start is an ``{"error": …}`` before it."""
    try:
        yield sse(reply.chunk({"role": "assistant", "content": ""}))
        async for event in relay:
            if isinstance(event, Delta):
                if event.text:
                    yield sse(reply.chunk({"content": event.text}))
            elif isinstance(event, Finished):
                yield sse(reply.chunk({}, _completed(event).reason))
                if with_usage:
                    yield sse(reply.usage_chunk(event))
    except Exception as error:
        yield sse(envelope(known_error(error), request_id))
    yield _DONE


def _completed(end: Finished) -> Finished:
    """Raises when the model host cut the generation off, which no client asked for."""
    if end.reason == "cancelled":
        raise HearthError(
            "the generation was cut off; try again", code="cancelled", status=503, retry_after=1.0
        )
    return end
