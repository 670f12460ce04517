"""SQL of assistants: characters with a biography, and one memory over all their conversations.

An assistant receives the summaries of each conversation of its owner that names it, as ``assistant`` or among the
``participants``. Summaries that no reflection contains yet wait for the next one.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.store.memory.conversations import Conversation
from gateway.store.memory.summaries import StaleSummaryError, Summary
from gateway.store.request_log import erase_records
from gateway.store.rows import (
    column,
    columns,
    insert,
    load,
    newest,
    select,
    select_existing,
    select_one,
    stored,
    update,
)

# Other conversations of an assistant that one message has summarized, so that an old history does not flood the model.
_SETTLED_AT_ONCE = 10
_RECEIVED = (
    "conversations.owner = :owner AND (conversations.assistant = :id OR :name <> '' AND :name IN "
    "(SELECT value FROM json_each(conversations.participants)))"
)
# A rollover has put a summary of the whole conversation into the next one.
_WAITING = (
    f"FROM summaries JOIN conversations ON conversations.id = conversation WHERE {_RECEIVED} "
    "AND superseded_by IS NULL AND level <> 'message' "
    "AND NOT EXISTS (SELECT 1 FROM conversations AS later WHERE later.previous = conversations.id) "
    "AND NOT EXISTS (SELECT 1 FROM reflected WHERE reflected.assistant = :id AND summary = seq)"
)


class Assistant(Struct, frozen=True, kw_only=True):
    """A character of ``owner``. ``name`` is "" for one that was made for a single conversation."""

    id: str
    owner: str
    name: str
    biography: str
    version: int  # of the biography, from 1
    created_at: float
    updated_at: float
    redactions: int = 0  # secrets redacted from its name and biographies


class Biography(Struct, frozen=True):
    """One version of a biography."""

    version: int
    text: str
    created_at: float


class Reflection(Struct, frozen=True, kw_only=True):
    """An assistant's reflection: the version before and further summaries. ``tokens`` counts text and pins."""

    version: int
    text: str
    pins: list[str]
    tokens: int
    prompt_name: str
    prompt_version: int
    model: str
    created_at: float


class WaitingSummary(Struct, frozen=True):
    """A live summary that no reflection of the assistant contains yet, and the people of its conversation."""

    summary: Summary
    participants: list[str]


def add_assistant(connection: apsw.Connection, assistant: Assistant) -> None:
    """Raises InvalidRequestError when the owner has another assistant of that name."""
    _check_name(connection, assistant)
    insert(connection, "assistants", assistant)
    _add_biography(connection, assistant)


def save_assistant(connection: apsw.Connection, assistant: Assistant) -> None:
    """Update an assistant; a new ``version`` adds its biography.

    Raises InvalidRequestError when the owner has another assistant of that name.
    """
    _check_name(connection, assistant)
    update(connection, "assistants", assistant, "id")
    _add_biography(connection, assistant)


def get_assistant(connection: apsw.Connection, which: str, owner: str) -> Assistant:
    """The owner's assistant of that id, or else of that name. Raises NotFoundError."""
    source = "assistants WHERE owner = ?2 AND (id = ?1 OR name = ?1 AND name <> '') ORDER BY id <> ?1 LIMIT 1"
    missing = f"there is no assistant `{which[:100]}`"
    return select_existing(connection, Assistant, source, (which, owner), missing, "assistant")


def assistant_of(connection: apsw.Connection, conversation: Conversation) -> Assistant | None:
    if conversation.assistant is None:
        return None
    return select_one(connection, Assistant, "assistants WHERE id = ?", (conversation.assistant,))


def list_assistants(
    connection: apsw.Connection, owner: str, *, limit: int, before: tuple[float, str] | None = None
) -> list[Assistant]:
    """The owner's assistants, newest first; the cursor ``before`` has ``created_at`` and id of the last one."""
    source = "assistants WHERE owner = ?"
    return newest(connection, Assistant, source, (owner,), "created_at, id", limit, before)


def list_biographies(
    connection: apsw.Connection, assistant: str, *, limit: int, before: int | None = None
) -> list[Biography]:
    """Versions of the biography, newest first; the cursor ``before`` is a version."""
    source = "biographies WHERE assistant = ?"
    return newest(connection, Biography, source, (assistant,), "version", limit, before)


def list_reflections(
    connection: apsw.Connection, assistant: str, *, limit: int, before: int | None = None
) -> list[Reflection]:
    """Versions of the reflection, newest first; the cursor ``before`` is a version."""
    source = "reflections WHERE assistant = ?"
    return newest(connection, Reflection, source, (assistant,), "version", limit, before)


def delete_assistant(connection: apsw.Connection, assistant: Assistant) -> None:
    """Delete an assistant with its biographies, reflections and recorded prompts. Its conversations stay."""
    query = "SELECT id FROM conversations WHERE assistant = ?"
    erase_records(connection, column(connection, query, (assistant.id,)))
    connection.execute("DELETE FROM assistants WHERE id = ?", (assistant.id,))


def receivers(connection: apsw.Connection, conversation: Conversation) -> list[Assistant]:
    """The assistants that get the conversation's summaries."""
    return select(
        connection,
        Assistant,
        "assistants WHERE id = :assistant OR owner = :owner AND name <> '' "
        "AND name IN (SELECT value FROM json_each(:participants)) ORDER BY created_at, id",
        {name: stored(conversation)[name] for name in ("assistant", "owner", "participants")},
    )


def waiting_summaries(connection: apsw.Connection, assistant: Assistant) -> list[WaitingSummary]:
    """Summaries for the next reflection, oldest first."""
    values = {"owner": assistant.owner, "id": assistant.id, "name": assistant.name}
    query = f"{_WAITING} ORDER BY to_time, seq"
    rows = load(connection, Summary, f"SELECT {columns(Summary, 'summaries.')} {query}", values)
    people = connection.execute(f"SELECT participants {query}", values)
    return [
        WaitingSummary(row, msgspec.json.decode(str(names)))
        for row, (names,) in zip(rows, list(people), strict=True)
    ]


def reflected_summaries(connection: apsw.Connection, conversation: Conversation) -> set[int]:
    """``seq`` of the conversation's summaries that the reflection of its assistant contains."""
    return set(
        column(
            connection,
            "SELECT summary FROM reflected JOIN summaries ON seq = summary WHERE assistant = ? AND conversation = ?",
            (conversation.assistant, conversation.id),
        )
    )


def add_reflection(
    connection: apsw.Connection, assistant: str, reflection: Reflection, summaries: Sequence[int]
) -> None:
    """Store the next version, which contains ``summaries``.

    Raises StaleSummaryError when one of them, or the version before, is gone or has been reflected meanwhile.
    """
    last = list_reflections(connection, assistant, limit=1)
    if (last[0].version if last else 0) != reflection.version - 1:
        raise StaleSummaryError("the assistant has another reflection meanwhile")
    try:
        insert(connection, "reflections", reflection, assistant=assistant)
        for summary in summaries:
            add_reflected(connection, assistant, summary, reflection.version)
    except apsw.ConstraintError:
        raise StaleSummaryError("a summary was erased or reflected meanwhile") from None


def add_reflected(connection: apsw.Connection, assistant: str, summary: int, reflection: int) -> None:
    insert(connection, "reflected", {"assistant": assistant, "summary": summary, "reflection": reflection})


def unsettled(connection: apsw.Connection, conversation: Conversation, before: float) -> list[str]:
    """Ids of the assistant's other conversations that ended ``before`` and are not summarized to their end.

    Only those of the policy ``conversations``: the others are summarized as they go on.
    """
    return column(
        connection,
        "SELECT id FROM conversations WHERE owner = ? AND assistant = ? AND id <> ? AND policy = 'conversations' "
        "AND archived_at IS NULL AND updated_at < ? AND EXISTS (SELECT 1 FROM messages "
        "WHERE conversation = conversations.id AND summarized_by IS NULL AND NOT failed) "
        "ORDER BY updated_at DESC LIMIT ?",
        (conversation.owner, conversation.assistant, conversation.id, before, _SETTLED_AT_ONCE),
    )


def _add_biography(connection: apsw.Connection, assistant: Assistant) -> None:
    connection.execute(
        "INSERT INTO biographies VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (assistant.id, assistant.version, assistant.biography, assistant.updated_at),
    )


def _check_name(connection: apsw.Connection, assistant: Assistant) -> None:
    taken = connection.execute(
        "SELECT count(*) FROM assistants WHERE owner = ? AND name = ? AND name <> '' AND id <> ?",
        (assistant.owner, assistant.name, assistant.id),
    ).get
    if taken:
        raise InvalidRequestError(
            f"there is another assistant named `{assistant.name}`; rename one of them", param="name"
        )
