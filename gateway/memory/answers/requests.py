"""The memory's view of requests that code carries out: reminders, and changes to the list of tasks."""

from __future__ import annotations

import apsw

from gateway.store.memory.conversations import Conversation
from gateway.store.memory.messages import StoredMessage


class Requests:
    """Messages that are such a request as a whole; none, for a memory without a runner of tasks."""

    def reads(self, text: str) -> bool:
        """Whether a message asks for something of the kind, whatever was said before."""
        return False

    def told(self, reply: str) -> bool:
        """Whether a reply is like those to such messages."""
        return False

    def note(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> list[str] | None:
        """Do what a user's message asks for; the ids of changed tasks, or None if it is no such request."""
        return None

    def note_within(
        self, connection: apsw.Connection, conversation: Conversation, message: StoredMessage
    ) -> list[str]:
        """Set a reminder that a part of a message asks for; the ids of the message's tasks if it does."""
        return []

    async def answer(self, conversation: Conversation, asked: str, *, noted: bool) -> tuple[str, bool]:
        """Report of the last message's request, or of the missing part; "" if it is no such request.

        With ``noted`` it is then a report of what the message has changed on the list. True: it may say more than that.
        """
        return "", False

    def wake(self) -> None:
        """Look for reminders that a stored message has set."""
