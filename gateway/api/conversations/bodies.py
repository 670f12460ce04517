"""Bodies and replies of the conversation endpoints."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from gateway.api.parsing.fields import convert, decode_object
from gateway.base.errors import InvalidRequestError
from gateway.memory.types import Block, BudgetReport, LeftOut
from gateway.store.memory.conversations import DEFAULT_POLICIES, Conversation, ConversationKind, PolicyName
from gateway.store.memory.messages import MessageRole, StoredMessage
from gateway.store.memory.summaries import Summary
from model_host.protocol import Lane

Name = Annotated[str, Meta(min_length=1, max_length=120)]
MessageId = Annotated[str, Meta(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9._:-]+$")]


class NewConversation(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /v1/conversations. ``policy`` defaults by kind: chat as configured, code ``rounds``, channel ``window``."""

    kind: ConversationKind = "chat"
    title: Annotated[str, Meta(max_length=200)] = ""
    participants: Annotated[list[Name], Meta(max_length=256)] = []
    persona: Annotated[str, Meta(max_length=8000)] = ""
    instructions: Annotated[str, Meta(max_length=8000)] = ""
    policy: PolicyName | None = None


class NewMessageBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST …/messages. ``id`` makes sending again harmless; without ``reply`` the line is only kept.

    ``role`` assistant keeps what the assistant has said elsewhere: nothing is learned from it, as from any reply.
    """

    text: Annotated[str, Meta(min_length=1)]
    speaker: Annotated[str, Meta(max_length=120)] = ""
    role: MessageRole = "user"
    stream: bool = False
    id: MessageId | None = None
    reply: bool = True
    priority: Lane | None = None
    max_tokens: Annotated[int, Meta(ge=1, le=1_048_576)] | None = None


class Conversion(Struct, frozen=True, forbid_unknown_fields=True):
    """POST …/convert. ``to`` insists on a prompt version; by default the loaded one of each prompt."""

    to: Annotated[int, Meta(ge=1)] | None = None


class ConversationReply(Struct, frozen=True, kw_only=True):
    """A conversation, as its owner sees it."""

    id: str
    kind: ConversationKind
    policy: PolicyName
    title: str
    participants: list[str]
    persona: str
    instructions: str
    model: str
    previous: str | None
    created_at: float
    updated_at: float
    archived_at: float | None
    redactions: int

    @classmethod
    def of(cls, conversation: Conversation) -> ConversationReply:
        """Everything but the owner."""
        return cls(**{name: getattr(conversation, name) for name in cls.__struct_fields__})


class StoredMessageReply(Struct, frozen=True, kw_only=True):
    """A message of the log. ``seq`` is the cursor of the list."""

    seq: int
    id: str
    role: MessageRole
    speaker: str
    text: str
    tokens: int
    round: int
    failed: bool
    summarized: bool
    redactions: int
    created_at: float

    @classmethod
    def of(cls, message: StoredMessage) -> StoredMessageReply:
        """As the owner sees it."""
        names = [name for name in cls.__struct_fields__ if name != "summarized"]
        values = {name: getattr(message, name) for name in names}
        return cls(**values, summarized=message.summarized_by is not None)


class SummaryReply(Struct, frozen=True, kw_only=True):
    """A summary with its span. ``seq`` is the cursor of the list; a live one is superseded by none."""

    seq: int
    level: str
    first: int
    last: int
    from_time: float
    to_time: float
    text: str
    pins: list[str]
    tokens: int
    prompt_name: str
    prompt_version: int
    model: str
    superseded_by: int | None
    created_at: float

    @classmethod
    def of(cls, summary: Summary) -> SummaryReply:
        """As the owner sees it."""
        return cls(**{name: getattr(summary, name) for name in cls.__struct_fields__})


class ConversationPage(Struct, frozen=True):
    """A page of conversations; ``next`` is the cursor of the page after it, null on the last one."""

    data: list[ConversationReply]
    next: str | None


class MessagePage(Struct, frozen=True):
    """A page of messages, oldest first."""

    data: list[StoredMessageReply]
    next: int | None


class SummaryPage(Struct, frozen=True):
    """A page of summaries, newest first."""

    data: list[SummaryReply]
    next: int | None


class PostReply(Struct, frozen=True):
    """The reply to a message (null when none was wanted), the message as it was kept, and what the prompt was."""

    message: StoredMessageReply | None
    accepted: StoredMessageReply
    budget: BudgetReport | None
    compaction: Literal["none", "queued"]


class ContextReply(Struct, frozen=True, kw_only=True):
    """The prompt of the next reply, in blocks, and what is not in it."""

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
    """It is gone."""

    id: str
    deleted: bool


class Forgotten(Struct, frozen=True):
    """How many messages went, replies to them included."""

    id: str
    messages: int


def parse_new(body: bytes) -> NewConversation:
    """The body of POST /v1/conversations; an empty one asks for the defaults. Raises InvalidRequestError."""
    return convert(decode_object(body), NewConversation) if body.strip() else NewConversation()


def parse_conversion(body: bytes) -> Conversion:
    """The body of POST …/convert, which may be empty. Raises InvalidRequestError."""
    return convert(decode_object(body), Conversion) if body.strip() else Conversion()


def parse_message(body: bytes) -> NewMessageBody:
    """The body of POST …/messages. Raises InvalidRequestError."""
    message = convert(decode_object(body), NewMessageBody)
    if not message.text.strip():
        raise InvalidRequestError("`text` is empty", param="text")
    if message.role == "assistant" and message.reply:
        raise InvalidRequestError(
            "a message of the assistant gets no reply: send `reply`: false", param="role"
        )
    return message


def policy_of(new: NewConversation, configured: PolicyName) -> PolicyName:
    """The policy that a new conversation gets."""
    return new.policy or DEFAULT_POLICIES.get(new.kind, configured)
