"""POST /v1/conversations/{id}/messages: the reply whole, or as events while it is generated."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from msgspec import Meta, defstruct

from gateway.api.conversations.replies import StoredMessageReply, shown
from gateway.api.http.errors import envelope
from gateway.api.parsing.fields import Body, invalid, read_body
from gateway.api.services import ApiRequest
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
    TextDelta,
    Waiting,
)
from gateway.memory.types import BudgetReport
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import MessageRole
from model_host.protocol import Lane

MessageId = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:-]+$")]

_NAMES: dict[type[PostEvent], str] = {
    Held: "held",
    Loading: "loading",
    Waiting: "queued",
    Compacting: "compacting",
    TextDelta: "delta",
}


class NewMessageBody(Body, frozen=True, kw_only=True):
    """POST …/messages. ``id`` makes retries harmless; ``reply: false`` only stores the message.

    The role ``assistant`` stores what the assistant said elsewhere. As from any reply, no facts are learned from it.
    """

    text: Annotated[str, Meta(min_length=1)]
    speaker: Annotated[str, Meta(max_length=120)] = ""
    role: MessageRole = "user"
    stream: bool = False
    id: MessageId | None = None
    reply: bool = True
    priority: Lane | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise invalid("text", "it is empty")
        if self.role == "assistant" and self.reply:
            raise invalid("role", "a message of the assistant gets no reply: send `reply: false`")


# The reply (null if none was wanted), the message as it was stored, and the size of the prompt.
PostReply: Any = defstruct(
    "PostReply",
    [
        ("message", StoredMessageReply | None),
        ("accepted", StoredMessageReply),
        ("budget", BudgetReport | None),
        ("compaction", Literal["none", "queued"]),
    ],
    frozen=True,
    module=__name__,
)


async def post_message(request: ApiRequest, conversation: Conversation) -> object:
    """Accept the message and answer it."""
    services, request_id = request.services, request.id
    body = await read_body(request, NewMessageBody)
    call = PostCall(
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
    relay: Relay[PostEvent] = Relay(services.conversations.post(call), services.drain)
    if body.stream:
        # An error before the model is loaded is an HTTP status.
        return StreamReply(
            relay,
            lambda items: _events(items, request_id),
            hold=lambda event: not isinstance(event, Loading),
        )
    return await until_disconnect(request.receive, _collect(relay))


async def _collect(relay: Relay[PostEvent]) -> Any:
    accepted: MessageAccepted | None = None
    async with relay:
        async for event in relay:
            if isinstance(event, MessageAccepted):
                accepted = event
            elif isinstance(event, Done):
                return _whole(accepted, event)
    raise AssertionError("a message ends with its reply or an error")


def _whole(accepted: MessageAccepted | None, done: Done) -> Any:
    assert accepted is not None, "a message is accepted before it is answered"
    return PostReply(
        shown(done.message) if done.message else None,
        shown(accepted.message),
        done.report,
        done.compaction,
    )


async def _events(relay: Relay[PostEvent], request_id: str) -> AsyncIterator[bytes]:
    """``held``, ``accepted``, ``loading``, ``queued``, ``compacting``, ``budget``, ``delta``; ``done`` or ``error``."""
    try:
        accepted: MessageAccepted | None = None
        async for event in relay:
            match event:
                case MessageAccepted(message):
                    accepted = event
                    yield sse(shown(message), "accepted")
                case BudgetKnown(report):
                    yield sse(report, "budget")
                case Done():
                    yield sse(_whole(accepted, event), "done")
                case _:
                    yield sse(event, _NAMES[type(event)])
    except Exception as error:
        yield sse(envelope(known_error(error), request_id), "error")
