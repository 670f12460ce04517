"""A message for a conversation, and what is told of it on the way to its reply."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from gateway.memory.types import BudgetReport
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import MessageRole, StoredMessage
from model_host.protocol import Lane


class PostCall(Struct, frozen=True, kw_only=True):
    """A message for a conversation. ``message_id`` makes sending it again harmless."""

    id: str  # of the request
    conversation: Conversation
    text: str
    speaker: str = ""
    message_id: str | None = None
    lane: Lane = "interactive"
    max_tokens: int | None = None
    role: MessageRole = "user"
    reply: bool = True  # False: only keep the line, as a bot does with what it overhears


class Held(Struct, frozen=True):
    """The message waits until the conversation is free: ``reason`` is reply or compaction."""

    reason: str


class MessageAccepted(Struct, frozen=True):
    """The message is on disk."""

    message: StoredMessage


class Loading(Struct, frozen=True):
    """The model is being started: ``fraction`` from 0 to 1."""

    fraction: float


class Waiting(Struct, frozen=True):
    """Others are answered first. ``position`` 1 is the next one; ``wait_seconds`` is an estimate, None if unknown."""

    position: int
    wait_seconds: float | None


class Compacting(Struct, frozen=True):
    """The history has to be compacted before this message can be answered."""

    levels: list[str]
    tokens: int


class BudgetKnown(Struct, frozen=True):
    """What the prompt consists of."""

    report: BudgetReport


class TextDelta(Struct, frozen=True):
    """More of the reply."""

    text: str


class Done(Struct, frozen=True):
    """The reply is on disk; None when none was wanted. ``compaction`` tells whether one is due."""

    message: StoredMessage | None
    report: BudgetReport | None
    compaction: Literal["none", "queued"]


PostEvent = Held | MessageAccepted | Loading | Waiting | Compacting | BudgetKnown | TextDelta | Done
