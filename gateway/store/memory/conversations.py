"""SQL of conversations, which only their owner can list, read or erase; and erasure of a speaker or an owner."""

from __future__ import annotations

from typing import Literal

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import NotFoundError
from gateway.store.memory.summaries import unsummarize
from gateway.store.request_log import delete_records, erase_records
from gateway.store.rows import as_json, column, insert, newest, select, select_existing, select_one, update

# The speaker's messages, the replies to them, failed ones included, and each assistant message directly after one.
_DOOMED = """
WITH lines AS (
  SELECT seq, role, speaker, answers, lag(role) OVER log AS role_before, lag(speaker) OVER log AS speaker_before
  FROM messages WHERE conversation = ?1 WINDOW log AS (ORDER BY seq)
), theirs AS (SELECT seq FROM lines WHERE role = 'user' AND speaker = ?2)
SELECT seq FROM lines WHERE seq IN (SELECT seq FROM theirs) OR answers IN (SELECT seq FROM theirs)
  OR (role = 'assistant' AND role_before = 'user' AND speaker_before = ?2)
ORDER BY seq
"""

# Rows of an owner. With them go their own rows: messages and summaries, versions, runs, steps, notices, jobs.
_OWNED = ("conversations", "tasks", "facts", "assistants", "responses", "approvals")

ConversationKind = Literal["chat", "code", "channel"]
PolicyName = Literal["ceiling", "rounds", "window", "conversations"]

# The policies of these kinds; other kinds use the configured one.
DEFAULT_POLICIES: dict[ConversationKind, PolicyName] = {"code": "rounds", "channel": "window"}


class Conversation(Struct, frozen=True, kw_only=True):
    """One conversation. ``id`` is a UUID; times are Unix seconds."""

    id: str
    owner: str
    kind: ConversationKind
    policy: PolicyName
    title: str = ""
    participants: list[str] = []
    instructions: str = ""  # the caller's, part of the core prefix
    model: str = ""
    previous: str | None = None  # the conversation that this one continues after a rollover
    created_at: float
    updated_at: float
    archived_at: float | None = None
    counted_by: str = ""  # the model that counted its messages' tokens
    time_zone: str = ""  # whose days its summaries follow; "" for the configured one
    assistant: str | None = None  # id of the character that speaks in it
    project: str | None = None  # id of the project whose code its prompts may quote
    redactions: int = 0  # secrets redacted from its title, names and instructions


def add_conversation(connection: apsw.Connection, conversation: Conversation) -> None:
    insert(connection, "conversations", conversation)


def get_conversation(connection: apsw.Connection, conversation: str, owner: str) -> Conversation:
    """The owner's conversation of that id. Raises NotFoundError, also for another owner's."""
    source = "conversations WHERE id = ? AND owner = ?"
    missing = f"there is no conversation `{conversation[:100]}`"
    return select_existing(connection, Conversation, source, (conversation, owner), missing)


def continuation(connection: apsw.Connection, conversation: Conversation) -> Conversation | None:
    """The newest conversation that continues this one directly."""
    source = "conversations WHERE previous = ? AND owner = ? ORDER BY created_at DESC, id LIMIT 1"
    return select_one(connection, Conversation, source, (conversation.id, conversation.owner))


def any_conversation(connection: apsw.Connection, conversation: str) -> Conversation:
    """The conversation of that id, for background work. Raises NotFoundError."""
    missing = f"the conversation `{conversation}` has been erased"
    return select_existing(
        connection, Conversation, "conversations WHERE id = ?", (conversation,), missing, None
    )


def list_conversations(
    connection: apsw.Connection,
    owner: str,
    *,
    limit: int,
    before: tuple[float, str] | None = None,
    archived: bool = False,
) -> list[Conversation]:
    """The owner's conversations, last used first; the cursor ``before`` has ``updated_at`` and id of the last one."""
    source = "conversations WHERE owner = ? AND (? OR archived_at IS NULL)"
    return newest(connection, Conversation, source, (owner, archived), "updated_at, id", limit, before)


def conversations_of(connection: apsw.Connection, owner: str) -> list[Conversation]:
    """All of the owner's conversations, archived ones included."""
    return select(connection, Conversation, "conversations WHERE owner = ? ORDER BY created_at, id", (owner,))


def save_conversation(connection: apsw.Connection, conversation: Conversation) -> None:
    """Update a conversation. Raises NotFoundError when it was erased meanwhile."""
    update(connection, "conversations", conversation, "id")
    if not connection.changes():
        raise NotFoundError(f"there is no conversation `{conversation.id}` any more", param="id")


def set_model(connection: apsw.Connection, conversation: str, model: str) -> None:
    """The conversation goes on with ``model``, which has counted its messages' tokens."""
    connection.execute(
        "UPDATE conversations SET model = ?1, counted_by = ?1 WHERE id = ?2", (model, conversation)
    )


def erase_conversation(connection: apsw.Connection, conversation: str, owner: str) -> None:
    """Delete a conversation with its messages, summaries, facts, tasks, jobs and recorded prompts.

    Recorded prompts of the owner's other conversations that show its facts, tasks or summaries are deleted too, and so
    are reflections that contain its summaries, and an assistant without a name that has no other conversation.
    Conversations that continue it lose their summaries, which contain its text, and their recorded prompts; their
    messages are summarized again when due. Raises NotFoundError.
    """
    get_conversation(connection, conversation, owner)
    names = with_continuations(connection, conversation)
    erase_records(connection, names)
    drop_summaries(connection, names)
    connection.execute("DELETE FROM conversations WHERE id = ?", (conversation,))
    drop_news(connection, conversation)
    connection.execute(
        "DELETE FROM assistants WHERE name = '' AND owner = ? "
        "AND NOT EXISTS (SELECT 1 FROM conversations WHERE assistant = assistants.id)",
        (owner,),
    )


def drop_summaries(connection: apsw.Connection, conversations: list[str]) -> None:
    for table in ("summaries", "current_summaries"):
        among = "conversation IN (SELECT value FROM json_each(?))"
        connection.execute(f"DELETE FROM {table} WHERE {among}", (as_json(conversations),))


def drop_news(connection: apsw.Connection, conversation: str) -> None:
    """Delete what gateways told each other about a conversation so far: it names the keys of facts."""
    connection.execute("DELETE FROM events WHERE key = ?", (conversation,))


def with_continuations(connection: apsw.Connection, conversation: str) -> list[str]:
    """Ids of the conversation and of those that continue it, directly or not."""
    return column(
        connection,
        "WITH RECURSIVE found (id) AS (SELECT id FROM conversations WHERE id = ?1 "
        "UNION SELECT conversations.id FROM conversations JOIN found ON previous = found.id) SELECT id FROM found",
        (conversation,),
    )


def forget_owner(connection: apsw.Connection, owner: str) -> dict[str, int]:
    """Erase everything that was stored for an owner except keys; returns the number of rows by table."""
    erased = {}
    for table in _OWNED:
        connection.execute(f"DELETE FROM {table} WHERE owner = ?", (owner,))
        erased[table] = connection.changes()
    return erased | {"requests": delete_records(connection, "owner = ?", (owner,))}


def forget_speaker(connection: apsw.Connection, conversation: Conversation, speaker: str) -> int:
    """Erase what ``speaker`` said in a conversation; returns the number of erased messages, replies included.

    Also erases the facts and tasks read from them, every summary that may contain them (the remaining messages are
    summarized again), and the recorded prompts of the conversation and of others that list its facts or tasks.
    Conversations that continue it lose their summaries and prompts.
    """
    name = conversation.id
    doomed = column(connection, _DOOMED, (name, speaker))
    left = [each for each in conversation.participants if each != speaker]
    if left != conversation.participants:
        save_conversation(connection, msgspec.structs.replace(conversation, participants=left))
    if not doomed:
        return 0
    unsummarize(connection, name, doomed[0])
    lines = (name, as_json(doomed))
    for table, number in (("facts", "message"), ("tasks", "origin"), ("messages", "seq")):
        connection.execute(
            f"DELETE FROM {table} WHERE conversation = ? AND {number} IN (SELECT value FROM json_each(?))",
            lines,
        )
    # A change of a task that somebody else had created stays.
    connection.execute(
        "UPDATE tasks SET message = NULL WHERE message IN (SELECT value FROM json_each(?))", lines[1:]
    )
    names = with_continuations(connection, name)
    drop_summaries(connection, names[1:])
    erase_records(connection, names)
    drop_news(connection, name)
    return len(doomed)
