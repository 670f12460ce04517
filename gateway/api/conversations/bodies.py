"""Bodies and small replies of the conversation endpoints."""

from __future__ import annotations

from typing import Annotated, TypeVar

from msgspec import Meta, Struct
from starlette.requests import Request

from gateway.api.parsing.fields import invalid, parse
from gateway.memory.types import Block, LeftOut
from gateway.store.memory.conversations import ConversationKind, PolicyName
from gateway.store.memory.messages import MessageRole
from model_host.protocol import Lane

T = TypeVar("T")

Name = Annotated[str, Meta(min_length=1, max_length=120)]
MessageId = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:-]+$")]


class NewConversation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /v1/conversations. ``policy`` defaults to the configured one; code to ``rounds``, channel to ``window``."""

    kind: ConversationKind = "chat"
    title: Annotated[str, Meta(max_length=200)] = ""
    participants: Annotated[list[Name], Meta(max_length=256)] = []
    persona: Annotated[str, Meta(max_length=8000)] = ""
    instructions: Annotated[str, Meta(max_length=8000)] = ""
    policy: PolicyName | None = None


class NewMessageBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
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


class Conversion(Struct, frozen=True, forbid_unknown_fields=True):
    """POST …/convert. ``to`` is a prompt version; by default the loaded version of each prompt."""

    to: Annotated[int, Meta(ge=1)] | None = None


class ContextReply(Struct, frozen=True, kw_only=True):
    """The blocks of the next prompt, and what it leaves out."""

    blocks: list[Block]
    left_out: list[LeftOut]
    total: int
    limit: int
    ceiling: int
    floor: int


class CompactionReply(Struct, frozen=True):
    """How many summaries were made. ``rejected``: how many of a conversion's were not accepted and stay as they are."""

    id: str
    summaries: int
    rejected: int = 0


class Erased(Struct, frozen=True):
    """Confirms the deletion."""

    id: str
    deleted: bool


class Forgotten(Struct, frozen=True):
    """How many messages were erased, including the replies to them."""

    id: str
    messages: int


async def read_optional(request: Request, kind: type[T]) -> T:
    """The body, which may be empty: all its fields have defaults. Raises InvalidRequestError."""
    return parse((await request.body()).strip() or b"{}", kind)
