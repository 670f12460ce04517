"""What the memory sees of requests that code carries out: reminders, and changes to the list of tasks."""

from __future__ import annotations

from typing import Protocol

import apsw

from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import StoredMessage


class Requests(Protocol):
    """Messages that are such a request as a whole."""

    def reads(self, text: str) -> bool:
        """Whether a message asks for something of the kind."""

    def told(self, reply: str) -> bool:
        """Whether a reply is like those to such messages."""

    def note(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> list[str] | None:
        """Carry a message out; the ids of changed tasks, or None if it is no such request."""

    async def answer(self, conversation: Conversation, asked: str) -> str:
        """What was done for the last message, or what it lacks; "" if it is no such request."""

    def wake(self) -> None:
        """Look for reminders that a stored message has set."""


class NoRequests:
    """For a memory without a runner of tasks."""

    def reads(self, text: str) -> bool:
        return False

    def told(self, reply: str) -> bool:
        return False

    def note(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> list[str] | None:
        return None

    async def answer(self, conversation: Conversation, asked: str) -> str:
        return ""

    def wake(self) -> None:
        pass


NO_REQUESTS = NoRequests()
