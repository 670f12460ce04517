"""POST /v1/conversations/{id}/messages: the reply whole, or as events while it is generated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, defstruct

from gateway.api.conversations.replies import StoredMessageReply, shown
from gateway.api.openai.models import DEFAULT, check_model
from gateway.api.parsing.fields import Body, invalid
from gateway.api.parsing.paging import ID_CHARACTERS
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import Relay, StreamReply, done_of, named_events, until_disconnect
from gateway.base.structs import view
from gateway.memory.events import BudgetKnown, Done, MessageAccepted, PostCall, PostEvent
from gateway.memory.hub import News
from gateway.memory.types import BudgetReport
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import MessageRole
from model_host.protocol import Lane

MessageId = Annotated[
    str,
    Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:-]+$", description=ID_CHARACTERS),
]


class NewMessageBody(Body, frozen=True, kw_only=True):
    """POST …/messages. ``id`` makes retries harmless; ``reply: false`` only stores the message.

    ``failed`` stores a message, or its code, that failed: prompts and summaries leave it out.
    ``model`` may name an adapter for the reply, as in the other APIs.
    The role ``assistant`` stores what the assistant said elsewhere. As from any reply, no facts are learned from it.
    """

    text: Annotated[str, Meta(min_length=1)]
    speaker: Annotated[str, Meta(max_length=120)] = ""
    role: MessageRole = "user"
    stream: bool = False
    id: MessageId | None = None
    reply: bool = True
    failed: bool = False
    priority: Lane | None = None
    model: Annotated[str, Meta(max_length=400)] | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None

    def __post_init__(self) -> None:
        if not self.text.strip():
            raise invalid("text", "it is empty")
        if self.failed and self.reply:
            raise invalid("failed", "a failed message gets no reply: send `reply: false`")
        if self.role == "assistant" and self.reply:
            raise invalid("role", "a message of the assistant gets no reply: send `reply: false`")


class Redacted(Struct, frozen=True):
    """A kind of secret that was taken out of the message, and how many there were."""

    kind: str
    count: int


# The reply (null if none was wanted), the message as it was stored, the size of the prompt, what was redacted
# (POST …/keep stores it after all), and how the reply ended: "length" at a limit, null if it was stored before.
PostReply: Any = defstruct(
    "PostReply",
    [
        ("message", StoredMessageReply | None),
        ("accepted", StoredMessageReply),
        ("budget", BudgetReport | None),
        ("compaction", Literal["none", "queued"]),
        ("redacted", list[Redacted]),
        ("finish_reason", Literal["stop", "length"] | None),
    ],
    frozen=True,
    module=__name__,
)


async def post_message(request: ApiRequest, conversation: Conversation, body: NewMessageBody) -> object:
    """Accept the message and answer it."""
    services = request.services
    call = view(
        PostCall,
        body,
        id=request.id,
        conversation=conversation,
        message_id=body.id,
        lane=body.priority or "interactive",
        adapter=check_model(services, body.model or DEFAULT),
    )
    relay: Relay[PostEvent] = Relay(services.conversations.post(call), services.drain)
    named = _namer()
    if body.stream:
        # An error before the model is loaded is an HTTP status.
        return StreamReply(
            relay,
            lambda items: named_events(items, request.id, named),
            hold=lambda event: not (isinstance(event, News) and event.kind == "loading"),
        )
    return await until_disconnect(request.receive, done_of(relay, named))


def _namer() -> Callable[[PostEvent], tuple[str, Any]]:
    """Events by name; the last one is ``done``."""
    accepted: Struct | None = None
    redacted: list[Redacted] = []

    def named(event: PostEvent) -> tuple[str, Any]:
        nonlocal accepted, redacted
        match event:
            case MessageAccepted(message, removed):
                accepted = shown(message)
                counts = Counter(each.kind for each in removed)
                redacted = [Redacted(kind, count) for kind, count in counts.items()]
                return "accepted", accepted
            case BudgetKnown(report):
                return "budget", report
            case Done(message, report, compaction, cut):
                assert accepted is not None, "a message is accepted before it is answered"
                reply = shown(message) if message else None
                ended = None if report is None else "length" if cut else "stop"
                return "done", PostReply(reply, accepted, report, compaction, redacted, ended)
            case News(kind, detail):
                return kind, detail

    return named
