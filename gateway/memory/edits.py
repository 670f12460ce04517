"""Changes to stored conversations: their fields, marks on what failed, and erasure."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import apsw
import msgspec

from gateway.base.errors import NotFoundError
from gateway.base.redact import redact
from gateway.memory.context import MemoryParts
from gateway.memory.hub import Hub
from gateway.memory.secrets import Secrets
from gateway.memory.summaries.compaction import HistoryCompactor
from gateway.store.memory.assistants import Assistant, delete_assistant
from gateway.store.memory.conversations import (
    Conversation,
    conversations_of,
    erase_conversation,
    forget_owner,
    forget_speaker,
    get_conversation,
    save_conversation,
)
from gateway.store.memory.jobs import add_job
from gateway.store.memory.messages import Round, StoredMessage, mark_failed

_FORGET = "forget"  # an event


class Edits:
    """``alone`` locks a conversation against messages and jobs and gives its current row."""

    def __init__(
        self,
        parts: MemoryParts,
        compactor: HistoryCompactor,
        hub: Hub,
        secrets: Secrets,
        alone: Callable[[Conversation], AbstractAsyncContextManager[Conversation]],
    ) -> None:
        self._parts = parts
        self._compactor = compactor
        self._hub = hub
        self._secrets = secrets
        self._alone = alone
        self._peers = parts.database.peers
        self._peers.hear(_FORGET, self._forgotten)

    async def change(
        self, conversation: Conversation, fields: Mapping[str, Any], redactions: int
    ) -> Conversation:
        """Change fields of a conversation. Its summaries stay; the next compactions follow the new policy."""

        def store(connection: apsw.Connection) -> Conversation:
            old = get_conversation(connection, conversation.id, conversation.owner)
            new = msgspec.structs.replace(old, **fields, redactions=old.redactions + redactions)
            save_conversation(connection, new)
            add_job(connection, "compact", new.id, now=self._parts.clock())
            return new

        async with self._alone(conversation):
            return await self._parts.database.write(store)

    async def mark(
        self,
        conversation: Conversation,
        failed: bool,
        *,
        message: str | None = None,
        number: int | None = None,
    ) -> Round:
        """Mark a message or a round (``number``) as failed or not. Raises NotFoundError."""

        def store(connection: apsw.Connection) -> Round:
            marked = mark_failed(connection, conversation.id, failed, message=message, number=number)
            add_job(connection, "compact", conversation.id, now=self._parts.clock())
            return marked

        async with self._alone(conversation):
            self._compactor.forget(conversation.id)
            return await self._parts.database.write(store)

    async def keep(self, conversation: Conversation, message: str | None) -> StoredMessage:
        """Store a message, by default the last redacted one, with the secrets that were taken out of it.

        Raises SecretsGoneError.
        """
        async with self._alone(conversation) as current:
            return await self._secrets.restore(
                self._parts.database, self._parts.inference, current.id, message
            )

    async def erase(self, conversation: Conversation) -> None:
        """Erase a conversation and everything derived from it, from the disk too."""
        async with self._alone(conversation):
            await self._parts.database.write(
                lambda c: erase_conversation(c, conversation.id, conversation.owner)
            )
            self._drop(conversation.id)
            self._hub.publish(conversation.id, "erased")
        await self.forget_text(conversation.owner, conversation.id)

    async def erase_owner(self, owner: str) -> dict[str, int]:
        """Erase everything stored for an owner, from the disk too; returns the number of rows by table."""
        database = self._parts.database
        conversations = await database.read(lambda c: conversations_of(c, owner))
        for conversation in conversations:
            with contextlib.suppress(NotFoundError):  # erased meanwhile
                await self.erase(conversation)
        erased = await database.write(lambda c: forget_owner(c, owner))
        await self.forget_text(owner)
        return erased | {"conversations": len(conversations)}

    async def erase_assistant(self, assistant: Assistant) -> None:
        """Erase an assistant with its biographies and reflections, from the disk too."""
        await self._parts.database.write(lambda c: delete_assistant(c, assistant))
        await self.forget_text(assistant.owner)

    async def forget(self, conversation: Conversation, speaker: str) -> int:
        """Erase a speaker's messages and everything derived from them, from the disk too; returns their number."""

        def forget(connection: apsw.Connection) -> int:
            current = get_conversation(connection, conversation.id, conversation.owner)
            gone = forget_speaker(connection, current, redact(speaker)[0])
            add_job(connection, "compact", conversation.id, now=self._parts.clock())
            return gone

        async with self._alone(conversation):
            self._drop(conversation.id)
            gone = await self._parts.database.write(forget)
        await self.forget_text(conversation.owner, conversation.id)
        return gone

    def _drop(self, conversation: str) -> None:
        """Drop the conversation's text from memory."""
        self._compactor.forget(conversation)
        self._secrets.drop(conversation)

    async def forget_text(self, owner: str, conversation: str = "") -> None:
        """Erase what was deleted from the disk, and from the memory and caches of every gateway."""
        self._peers.tell(_FORGET, owner, conversation)
        await self._parts.database.truncate_log()
        await self._parts.inference.forget(owner)

    async def _forgotten(self, owner: str, body: bytes) -> None:
        """Another gateway has erased something."""
        self._drop(msgspec.json.decode(body, type=str))
        await self._parts.inference.forget(owner)
