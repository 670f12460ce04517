"""Read facts and task changes from the messages since the last job of the kind, as many as one prompt holds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar

import apsw
import msgspec
import structlog
from msgspec import Struct

from gateway.base.aio import finish
from gateway.memory.context import MemoryParts
from gateway.memory.hub import Hub
from gateway.memory.model import Filled
from gateway.memory.summaries.dialogue import dialogue, split_dialogue
from gateway.store.db import Database
from gateway.store.memory.conversations import Conversation, any_conversation
from gateway.store.memory.jobs import Job, add_job, finish_job, set_watermark, watermark
from gateway.store.memory.messages import StoredMessage, messages_between

T = TypeVar("T")
log = structlog.get_logger(__name__)

_MAX_TOKENS = 2000
_MAX_OUTPUT_TOKENS = 600
# Parts that are read of a single message with more than _MAX_TOKENS; a text that long is seldom about its writer.
_MAX_PARTS = 16


class Reading(Struct, frozen=True, kw_only=True):
    """Messages to read now, oldest first, without failed ones, and their text in parts for one prompt each.

    Without a user's message there are no parts.

    ``through`` is the ``seq`` of the last message (0: none); ``more`` is set when others wait after it.
    """

    conversation: Conversation
    messages: list[StoredMessage]
    texts: list[str]
    through: int
    more: bool


async def unread(parts: MemoryParts, job: Job, kind: Literal["facts", "tasks"]) -> Reading:
    """Messages that the job has to read. Raises NotFoundError when its conversation was erased."""
    conversation, messages = await parts.database.read(
        lambda c: (
            any_conversation(c, job.subject),
            messages_between(c, job.subject, watermark(c, job.subject, kind) + 1, 2**62),
        )
    )
    budget = await parts.budget()
    most = min(_MAX_TOKENS, parts.defaults.prompt_tokens or _MAX_TOKENS, budget.limit // 2)
    now = messages[: _first(messages, most)]
    spoken = [message for message in now if not message.failed]
    asked = any(message.role == "user" for message in spoken)
    texts = await split_dialogue(dialogue(spoken), most, parts.inference.count) if asked else []
    if len(texts) > _MAX_PARTS:
        log.warning("only the beginning of a long message is read", kind=kind, conversation=conversation.id)
    return Reading(
        conversation=conversation,
        messages=spoken,
        texts=texts[:_MAX_PARTS],
        through=now[-1].seq if now else 0,
        more=len(now) < len(messages),
    )


async def propose(
    parts: MemoryParts, conversation: Conversation, kind: str, shape: type[T], *, text: str, known: str
) -> list[T]:
    """The model's proposals for ``text`` with the prompt ``kind``.

    Nothing when its output cannot be decoded, or when it is a model whose proposals are worse than none.
    """
    if not parts.served.current.memory_proposals:
        return []
    filled = Filled(parts.prompts.get(kind), {"known": known or "(none)", "dialogue": text})
    written, stopped = await parts.model(conversation).write(filled, max_tokens=_MAX_OUTPUT_TOKENS)
    try:
        return msgspec.json.decode(written, type=list[shape])  # type: ignore[valid-type]
    except msgspec.DecodeError as error:
        log.warning("proposals could not be read", kind=kind, stopped=stopped, problem=str(error)[:200])
        return []


async def conclude(
    database: Database, hub: Hub, job: Job, reading: Reading, apply: Callable[[apsw.Connection], list[str]]
) -> None:
    """Apply what was found and end the job in one transaction, then publish the ids that ``apply`` has changed.

    An interruption does not stop the write once it has begun, so its news are published too.
    """
    kind = job.kind
    assert kind in ("facts", "tasks")

    def store(connection: apsw.Connection) -> list[str]:
        changed = apply(connection)
        if reading.through:
            set_watermark(connection, job.subject, kind, reading.through)
        finish_job(connection, job)
        if reading.more:
            add_job(connection, kind, job.subject, now=time.time())
        return changed

    async def write_and_publish() -> None:
        changed = await database.write(store)
        if changed:
            hub.publish(reading.conversation.id, kind, changed=changed)

    await finish(write_and_publish())


def _first(messages: Sequence[StoredMessage], most: int) -> int:
    """How many of the first messages have at most ``most`` tokens together; at least one."""
    used = 0
    for number, message in enumerate(messages):
        used += message.tokens if message.tokens >= 0 else len(message.text) // 3
        if number and used > most:
            return number
    return len(messages)
