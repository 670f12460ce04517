"""POST /v1/conversations/{id}/messages: the reply whole, or as events while it is made."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.types import ASGIApp

from gateway.api.conversations.bodies import NewMessageBody, PostReply, StoredMessageReply, parse_message
from gateway.api.http.endpoint import json_reply
from gateway.api.http.errors import envelope
from gateway.api.services import services_of
from gateway.api.streaming.streams import Relay, StreamReply, known_error, sse, until_disconnect
from gateway.memory.events import (
    BudgetKnown,
    Compacting,
    Done,
    Held,
    Loading,
    MessageAccepted,
    PostCall,
    PostEvent,
    Prefilling,
    TextDelta,
    Waiting,
)
from gateway.store.memory.conversations import Conversation


async def post_message(request: Request, conversation: Conversation) -> ASGIApp:
    """Accept the message and answer it."""
    services = services_of(request)
    body = parse_message(await request.body())
    request_id: str = request.state.request_id
    relay: Relay[PostEvent] = Relay(
        services.conversations.post(_call(request_id, conversation, body)), services.drain
    )
    if body.stream:
        return StreamReply(relay, lambda items: _events(items, request_id), hold=_is_certain)
    accepted, done = await until_disconnect(request.receive, _collect(relay))
    return json_reply(_whole(accepted, done))


def _call(request_id: str, conversation: Conversation, body: NewMessageBody) -> PostCall:
    return PostCall(
        id=request_id,
        conversation=conversation,
        text=body.text,
        speaker=body.speaker,
        role=body.role,
        message_id=body.id,
        lane=body.priority or "interactive",
        max_tokens=body.max_tokens,
        reply=body.reply,
    )


def _is_certain(event: PostEvent) -> bool:
    """From here on the reply is a stream: before, an error is an HTTP status."""
    return not isinstance(event, Loading)


async def _collect(relay: Relay[PostEvent]) -> tuple[MessageAccepted, Done]:
    accepted: MessageAccepted | None = None
    async with relay:
        async for event in relay:
            if isinstance(event, MessageAccepted):
                accepted = event
            elif isinstance(event, Done):
                assert accepted is not None, "a message is accepted before it is answered"
                return accepted, event
    raise AssertionError("a message ends with its reply or an error")


def _whole(accepted: MessageAccepted, done: Done) -> PostReply:
    return PostReply(
        StoredMessageReply.of(done.message) if done.message else None,
        StoredMessageReply.of(accepted.message),
        done.report,
        done.compaction,
    )


async def _events(relay: Relay[PostEvent], request_id: str) -> AsyncIterator[bytes]:
    """``held``, ``accepted``, ``loading``, ``queued``, ``compacting``, ``budget``, ``reading``, ``delta``.

    The last one is ``done`` or ``error``.
    """
    try:
        accepted: MessageAccepted | None = None
        async for event in relay:
            match event:
                case MessageAccepted(message):
                    accepted = event
                    yield sse(StoredMessageReply.of(message), "accepted")
                case Held():
                    yield sse(event, "held")
                case Loading():
                    yield sse(event, "loading")
                case Waiting():
                    yield sse(event, "queued")
                case Prefilling():
                    yield sse(event, "reading")
                case Compacting():
                    yield sse(event, "compacting")
                case BudgetKnown(report):
                    yield sse(report, "budget")
                case TextDelta():
                    yield sse(event, "delta")
                case Done():
                    assert accepted is not None, "a message is accepted before it is answered"
                    yield sse(_whole(accepted, event), "done")
    except Exception as error:
        yield sse(envelope(known_error(error), request_id), "error")
