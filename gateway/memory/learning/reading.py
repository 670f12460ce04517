"""What facts and task updates are read from: the messages since the last time, as much as a prompt holds at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal

import apsw
import structlog
from msgspec import Struct

from gateway.base.aio import finish
from gateway.memory.context import MemoryParts
from gateway.memory.hub import Hub
from gateway.memory.summaries.dialogue import dialogue, split_dialogue
from gateway.store.db import Database
from gateway.store.memory.conversations import Conversation, any_conversation
from gateway.store.memory.jobs import Job, add_job, finish_job, set_watermark, watermark
from gateway.store.memory.messages import StoredMessage, messages_between

log = structlog.get_logger(__name__)

_MAX_TOKENS = 2000
# Of a single message that has more than that, so many parts are read; what is that long is seldom about its writer.
_MOST_PARTS = 16


class Reading(Struct, frozen=True, kw_only=True):
    """Messages to read now, the oldest first, failed ones left out, and their text in parts for one prompt each.

    ``through`` is the last message that this takes in (0: there was none), ``more`` whether others wait after it.
    """

    conversation: Conversation
    messages: list[StoredMessage]
    texts: list[str]
    through: int
    more: bool

    @property
    def by_users(self) -> bool:
        """Whether a user said anything in it."""
        return any(message.role == "user" for message in self.messages)


async def unread(parts: MemoryParts, job: Job, kind: Literal["facts", "tasks"]) -> Reading:
    """What the job has to read. Raises NotFoundError when its conversation was erased."""
    conversation, messages = await parts.database.read(
        lambda c: (
            any_conversation(c, job.conversation),
            messages_between(c, job.conversation, watermark(c, job.conversation, kind) + 1, 2**62),
        )
    )
    budget = await parts.budget()
    most = min(_MAX_TOKENS, parts.defaults.prompt_tokens or _MAX_TOKENS, budget.limit // 2)
    now = messages[: _first(messages, most)]
    spoken = [message for message in now if not message.failed]
    texts = await split_dialogue(dialogue(spoken), most, parts.inference.count) if spoken else []
    if len(texts) > _MOST_PARTS:
        log.warning("only the beginning of a long message is read", kind=kind, conversation=conversation.id)
    return Reading(
        conversation=conversation,
        messages=spoken,
        texts=texts[:_MOST_PARTS],
        through=now[-1].seq if now else 0,
        more=len(now) < len(messages),
    )


async def conclude(
    database: Database, hub: Hub, job: Job, reading: Reading, keep: Callable[[apsw.Connection], list[str]]
) -> None:
    """Write what was found and end the job, in one transaction; then tell what ``keep`` says it has changed.

    A job that is interrupted while it writes has written all the same: its news are told, too.
    """

    def store(connection: apsw.Connection) -> list[str]:
        changed = keep(connection)
        _close(connection, job, reading, time.time())
        return changed

    async def write_and_tell() -> None:
        changed = await database.write(store)
        if changed:
            hub.tell(reading.conversation.id, job.kind, changed=changed)

    await finish(write_and_tell())


def _close(connection: apsw.Connection, job: Job, reading: Reading, now: float) -> None:
    """End the job that has read this; what waits after it gets the next one."""
    assert job.kind != "compact"
    if reading.through:
        set_watermark(connection, job.conversation, job.kind, reading.through)
    finish_job(connection, job)
    if reading.more:
        add_job(connection, job.kind, job.conversation, now=now)


def _first(messages: Sequence[StoredMessage], most: int) -> int:
    """How many of the messages, at least one, have at most ``most`` tokens together."""
    used = 0
    for number, message in enumerate(messages):
        used += message.tokens if message.tokens >= 0 else len(message.text) // 3
        if number and used > most:
            return number
    return len(messages)
