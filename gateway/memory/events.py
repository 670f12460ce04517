"""A message for a conversation, and the events of its processing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from gateway.base.redact import Removed
from gateway.memory.hub import News
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
    adapter: str = ""  # for the reply alone
    max_tokens: int | None = None
    role: MessageRole = "user"
    failed: bool = False
    reply: bool = True  # False: only store the message, as a bot does with a channel's other lines


class MessageAccepted(Struct, frozen=True):
    """The message is on disk, without the secrets that were ``removed``."""

    message: StoredMessage
    removed: Sequence[Removed] = ()


class BudgetKnown(Struct, frozen=True):
    report: BudgetReport


class Done(Struct, frozen=True):
    """The reply is on disk; ``message`` is None when none was wanted. ``compaction`` says whether one is due.

    ``cut``: a limit of tokens ended the reply, not the model.
    """

    message: StoredMessage | None
    report: BudgetReport | None
    compaction: Literal["none", "queued"]
    cut: bool = False


# The progress of a message and the text of its reply are news.
PostEvent = News | MessageAccepted | BudgetKnown | Done
