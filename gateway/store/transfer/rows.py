"""Export and import conversations, facts and tasks as plain objects in a stable format.

Sequence numbers are local to a database: an import keeps those of an archive if all are free, or assigns new ones, and
rewrites the references.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.store.memory.assistants import (
    Assistant,
    Biography,
    Reflection,
    add_assistant,
    add_reflected,
    list_biographies,
    list_reflections,
)
from gateway.store.memory.conversations import Conversation, add_conversation, any_conversation
from gateway.store.memory.facts import Fact, list_facts
from gateway.store.memory.jobs import set_watermark
from gateway.store.memory.messages import StoredMessage, messages_between
from gateway.store.memory.summaries import Summary, list_summaries
from gateway.store.memory.tasks import Task, tasks_named
from gateway.store.rows import as_json, column, exists, insert, select, stored

VERSION = 2
# Token count of a text that no model has counted yet.
UNCOUNTED = -1
_MOST_KEPT = 2**40
# Latest time in Unix seconds: the end of the year 9998 in any time zone.
LATEST = 253_370_000_000.0


class Reflected(Struct, frozen=True):
    """A summary (``seq``) that the reflection of an assistant contains, from this version on."""

    assistant: str
    summary: int
    reflection: int


class Archive(Struct, frozen=True, kw_only=True, tag_field="type", tag="conversation"):
    """A conversation with its messages and summaries; ``seq``s are those of the source database."""

    conversation: Conversation
    messages: list[StoredMessage]
    summaries: list[Summary]
    reflected: list[Reflected] = []


class AssistantRow(Struct, frozen=True, kw_only=True, tag_field="type", tag="assistant"):
    """An assistant with all versions of its biography and its reflection; it precedes its conversations."""

    assistant: Assistant
    biographies: list[Biography]
    reflections: list[Reflection]


class FactRow(Struct, frozen=True, tag_field="type", tag="fact"):
    fact: Fact


class TaskRow(Struct, frozen=True, tag_field="type", tag="task"):
    task: Task


class Header(Struct, frozen=True, tag_field="type", tag="header"):
    format: Literal["hearth"]
    version: int
    exported_at: float


Line = Header | Archive | AssistantRow | FactRow | TaskRow


def conversation_ids(connection: apsw.Connection, owner: str | None) -> list[str]:
    """Ids of the owner's conversations, or of all with None, oldest first."""
    query = "SELECT id FROM conversations WHERE ?1 IS NULL OR owner = ?1 ORDER BY created_at, id"
    return column(connection, query, (owner,))


def read_archive(connection: apsw.Connection, conversation: str) -> Archive:
    return Archive(
        conversation=any_conversation(connection, conversation),
        messages=messages_between(connection, conversation, 0, 2**62),
        summaries=list_summaries(connection, conversation, limit=2**31)[::-1],
        reflected=select(
            connection,
            Reflected,
            "reflected WHERE summary IN (SELECT seq FROM summaries WHERE conversation = ?) ORDER BY assistant, summary",
            (conversation,),
        ),
    )


def read_assistants(connection: apsw.Connection, owner: str | None) -> list[AssistantRow]:
    """The owner's assistants, or all with None, oldest first."""
    where = "assistants WHERE ?1 IS NULL OR owner = ?1 ORDER BY created_at, id"
    return [
        AssistantRow(
            assistant=each,
            biographies=list_biographies(connection, each.id, limit=2**31)[::-1],
            reflections=list_reflections(connection, each.id, limit=2**31)[::-1],
        )
        for each in select(connection, Assistant, where, (owner,))
    ]


def write_assistant(connection: apsw.Connection, row: AssistantRow, owner: str | None) -> bool:
    """Store an assistant, for ``owner`` if one is given; False when it exists already.

    Raises InvalidRequestError when the owner has another one of that name.
    """
    assistant = row.assistant
    if owner is not None:
        assistant = msgspec.structs.replace(assistant, owner=owner)
    if exists(connection, "assistants WHERE id = ?", (assistant.id,)):
        return False
    add_assistant(connection, assistant)
    connection.execute("DELETE FROM biographies WHERE assistant = ?", (assistant.id,))
    for table, versions in (("biographies", row.biographies), ("reflections", row.reflections)):
        for each in versions:
            insert(connection, table, each, assistant=assistant.id)
    return True


def read_rest(connection: apsw.Connection, owner: str | None) -> Iterator[FactRow | TaskRow]:
    """Facts in all versions, then tasks, parents first."""
    every = "SELECT owner FROM facts UNION SELECT owner FROM tasks ORDER BY 1"
    for name in [owner] if owner is not None else column(connection, every):
        yield from map(FactRow, reversed(list_facts(connection, name, limit=2**31, ended=True)))
        ids = column(connection, "SELECT id FROM tasks WHERE owner = ?", (name,))
        yield from map(TaskRow, tasks_named(connection, name, ids))


class Numbers:
    """The new numbers of imported ``messages`` and ``facts``, by the old ones."""

    def __init__(self) -> None:
        self.messages: dict[int, int] = {}
        self.facts: dict[int, int] = {}
        # By the old number of the successor: the new numbers of the facts it replaces.
        self.superseded: defaultdict[int, list[int]] = defaultdict(list)


def write_archive(
    connection: apsw.Connection, archive: Archive, owner: str | None, numbers: Numbers | None = None
) -> bool:
    """Store a conversation, for ``owner`` if one is given; False when it exists already.

    Raises InvalidRequestError for references to messages that the archive does not have.
    """
    numbers = numbers or Numbers()
    conversation = archive.conversation
    if owner is not None:
        conversation = msgspec.structs.replace(conversation, owner=owner)
    if _is_here(connection, conversation.id):
        here = dict(
            connection.execute("SELECT id, seq FROM messages WHERE conversation = ?", (conversation.id,))
        )
        numbers.messages |= {each.seq: here[each.id] for each in archive.messages if each.id in here}
        return False
    if not _is_here(connection, conversation.previous):
        conversation = msgspec.structs.replace(conversation, previous=None)
    assistant = "assistants WHERE id = ? AND owner = ?"
    if not exists(connection, assistant, (conversation.assistant, conversation.owner)):
        conversation = msgspec.structs.replace(conversation, assistant=None)
    add_conversation(connection, conversation)
    seqs: dict[int, int] = {}
    keep = _are_free(connection, "messages", [message.seq for message in archive.messages])
    for message in archive.messages:
        seqs[message.seq] = _insert_message(connection, message, conversation.id, seqs, keep=keep)
    numbers.messages |= seqs
    names: dict[int, int] = {}
    keep = _are_free(connection, "summaries", [summary.seq for summary in archive.summaries])
    for summary in archive.summaries:
        names[summary.seq] = _insert_summary(connection, summary, conversation.id, numbers, seqs, keep=keep)
    for summary in archive.summaries:
        if summary.superseded_by is not None:
            values = (_mapped(names, summary.superseded_by), names[summary.seq])
            connection.execute("UPDATE summaries SET superseded_by = ? WHERE seq = ?", values)
    for message in archive.messages:
        if message.summarized_by is not None:
            values = (_mapped(names, message.summarized_by), seqs[message.seq])
            connection.execute("UPDATE messages SET summarized_by = ? WHERE seq = ?", values)
    for link in archive.reflected:
        known = "reflections WHERE assistant = ? AND version = ?"
        if exists(connection, known, (link.assistant, link.reflection)):
            add_reflected(connection, link.assistant, _mapped(names, link.summary), link.reflection)
    for kind in ("facts", "tasks"):  # reading an imported history for them would take days
        set_watermark(connection, conversation.id, kind, max(seqs.values(), default=0))
    return True


def write_row(
    connection: apsw.Connection, row: FactRow | TaskRow, owner: str | None, numbers: Numbers | None = None
) -> bool:
    """Store a fact's version or a task; False when it exists already. A fact's versions come oldest first.

    Raises InvalidRequestError for a task whose parent is missing.
    """
    numbers = numbers or Numbers()
    source: Fact | Task = row.fact if isinstance(row, FactRow) else row.task
    values = stored(source)
    if owner is not None:
        values["owner"] = owner
    # The source conversation is recorded only if it exists here.
    if not _is_here(connection, values["conversation"]):
        values["conversation"] = None
    values["message"] = numbers.messages.get(source.message or 0) if values["conversation"] else None
    if isinstance(source, Fact):
        where, table = ("id = :id AND owner = :owner AND valid_from = :valid_from", "facts")
        values["superseded_by"] = None
        if source.ended_at is None:
            where += (
                " OR owner = :owner AND scope = :scope AND scope_id = :scope_id AND key = :key "
                "AND ended_at IS NULL"
            )
    else:
        where, table = "id = :id AND owner = :owner", "tasks"
        parent = "tasks WHERE id = :parent AND owner = :owner"
        if source.parent is not None and not exists(connection, parent, values):
            raise InvalidRequestError(
                f"the task belongs to `{source.parent[:60]}`, which is neither here nor earlier in the file",
                param="task.parent",
            )
    if exists(connection, f"{table} WHERE {where}", values):
        return False
    if isinstance(source, Fact):
        values["seq"] = source.seq if _are_free(connection, "facts", [source.seq]) else None
    seq = insert(connection, table, values)
    if isinstance(source, Fact):
        for before in numbers.superseded.pop(source.seq, []):
            connection.execute("UPDATE facts SET superseded_by = ? WHERE seq = ?", (seq, before))
        if source.superseded_by is not None:
            numbers.superseded[source.superseded_by].append(seq)
    return True


def _are_free(connection: apsw.Connection, table: str, seqs: list[int]) -> bool:
    """Whether no row of the table has one of these numbers, and none leads to numbers that JSON cannot hold."""
    taken = f"{table} WHERE seq IN (SELECT value FROM json_each(?))"
    return max(seqs, default=0) < _MOST_KEPT and not exists(connection, taken, (as_json(seqs),))


def _is_here(connection: apsw.Connection, conversation: str | None) -> bool:
    return exists(connection, "conversations WHERE id = ?", (conversation,))


def _insert_message(
    connection: apsw.Connection,
    message: StoredMessage,
    conversation: str,
    seqs: dict[int, int],
    *,
    keep: bool,
) -> int:
    """Insert a message; ``seqs`` maps old numbers of earlier messages to new ones. Returns its new number."""
    answers = None if message.answers is None else _mapped(seqs, message.answers)
    seq = message.seq if keep else None
    changes = {"conversation": conversation, "summarized_by": None, "answers": answers, "seq": seq}
    return insert(connection, "messages", message, **changes)


def _insert_summary(
    connection: apsw.Connection,
    summary: Summary,
    conversation: str,
    numbers: Numbers,
    seqs: dict[int, int],
    *,
    keep: bool,
) -> int:
    """Insert a summary. Its span may begin, and end, in the conversation that this one continues: before its own."""
    begin = min(seqs.values(), default=2**62)

    def place(seq: int) -> int:
        before = numbers.messages.get(seq, 0)
        return seqs.get(seq, before if before < begin else 0)

    return insert(
        connection,
        "summaries",
        summary,
        seq=summary.seq if keep else None,
        conversation=conversation,
        superseded_by=None,
        first=place(summary.first),
        last=place(summary.last),
    )


def _mapped(seqs: dict[int, int], seq: int) -> int:
    if seq not in seqs:
        raise InvalidRequestError(f"the file is inconsistent: it refers to {seq}, which it does not have")
    return seqs[seq]
