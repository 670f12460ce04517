"""Forget a speaker of a conversation, or an owner: erase what they wrote and everything derived from it."""

from __future__ import annotations

import apsw
import msgspec

from gateway.store.memory.conversations import (
    Conversation,
    drop_news,
    drop_summaries,
    save_conversation,
    with_continuations,
)
from gateway.store.memory.summaries import unsummarize
from gateway.store.request_sources import delete_records, erase_records
from gateway.store.rows import as_json, column

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
