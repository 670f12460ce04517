"""SQL of the message log: appended to, read in pages, never changed but for marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import apsw
from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.store.rows import columns, load_all, load_one

MessageRole = Literal["user", "assistant"]


class StoredMessage(Struct, frozen=True, kw_only=True):
    """One line of the log, as it was said. ``seq`` orders all messages of all conversations.

    ``round`` counts from 1 in its conversation: the user's message (or several in a row) and the replies to it.
    ``failed`` lines stay in the log and out of prompts and summaries. ``tokens`` is the model's own count of
    ``text`` as plain text. ``answers`` is the ``seq`` of the message that a reply was made for.
    """

    seq: int
    id: str
    conversation: str
    role: MessageRole
    speaker: str
    text: str  # secrets redacted
    tokens: int
    round: int
    failed: bool
    summarized_by: int | None  # seq of the first summary that covers it
    redactions: int
    created_at: float
    answers: int | None = None


class NewMessage(Struct, frozen=True, kw_only=True):
    """A line to append; fields as in :class:`StoredMessage`."""

    id: str
    conversation: str
    role: MessageRole
    speaker: str
    text: str
    tokens: int
    redactions: int
    created_at: float
    failed: bool = False
    answers: int | None = None


class DuplicateMessageError(HearthError):
    """The conversation has another message of that id already."""

    status = 409
    code = "duplicate_message"


class UnansweredMessageError(HearthError):
    """The message got no reply, and a later one has been answered."""

    status = 409
    code = "conversation_went_on"


def add_message(connection: apsw.Connection, message: NewMessage) -> StoredMessage:
    """Append a line; a user's line after a reply begins the next round. Raises DuplicateMessageError."""
    if find_message(connection, message.id, message.conversation) is not None:
        raise DuplicateMessageError(
            f"this conversation has another message with the id `{message.id[:100]}`", param="id"
        )
    last = connection.execute(
        "SELECT round, role FROM messages WHERE conversation = ? ORDER BY seq DESC LIMIT 1",
        (message.conversation,),
    ).get
    round_, role = last or (0, "assistant")
    values = {name: getattr(message, name) for name in message.__struct_fields__}
    values["failed"] = int(message.failed)
    values["round"] = round_ + 1 if message.role == "user" and role == "assistant" else max(1, round_)
    connection.execute(
        f"INSERT INTO messages ({', '.join(values)}) VALUES ({', '.join(':' + name for name in values)})",
        values,
    )
    connection.execute(
        "UPDATE conversations SET updated_at = max(updated_at, ?) WHERE id = ?",
        (message.created_at, message.conversation),
    )
    found = load_one(_Row, _select(connection, "seq = ?", (connection.last_insert_rowid(),)))
    assert found is not None
    return _loaded(found)


def find_message(connection: apsw.Connection, message: str, conversation: str) -> StoredMessage | None:
    """The message of that id in that conversation."""
    row = load_one(_Row, _select(connection, "id = ? AND conversation = ?", (message, conversation)))
    return None if row is None else _loaded(row)


def reply_to(connection: apsw.Connection, message: StoredMessage) -> StoredMessage | None:
    """The reply that was made for a message, None while it can still get one.

    Raises UnansweredMessageError when it has none and the assistant has spoken since: a prompt ends with the latest
    messages, so the model would answer those.
    """
    since = "conversation = ? AND seq > ? AND role = 'assistant' AND NOT failed"
    values = (message.conversation, message.seq)
    row = load_one(_Row, _select(connection, f"{since} AND answers = ?", (*values, message.seq), "LIMIT 1"))
    if row is not None:
        return _loaded(row)
    if connection.execute(f"SELECT EXISTS (SELECT 1 FROM messages WHERE {since})", values).get:
        raise UnansweredMessageError(
            f"the message `{message.id[:100]}` got no reply, and the conversation has gone on since. "
            "Send it again under a new id.",
            param="id",
        )
    return None


def page_of_messages(
    connection: apsw.Connection, conversation: str, *, limit: int, before: int | None = None
) -> list[StoredMessage]:
    """The newest ``limit`` messages older than ``before`` (a ``seq``), oldest first."""
    where = "conversation = ?1 AND (?2 IS NULL OR seq < ?2)"
    rows = load_all(_Row, _select(connection, where, (conversation, before, limit), "DESC LIMIT ?3"))
    return [_loaded(row) for row in reversed(rows)]


def messages_between(
    connection: apsw.Connection, conversation: str, first: int, last: int
) -> list[StoredMessage]:
    """The messages from ``first`` to ``last`` (``seq``, both included), oldest first, failed ones too."""
    rows = load_all(
        _Row, _select(connection, "conversation = ? AND seq BETWEEN ? AND ?", (conversation, first, last))
    )
    return [_loaded(row) for row in rows]


def open_messages(connection: apsw.Connection, conversation: str, at_least: int) -> list[StoredMessage]:
    """What a prompt is made of: all messages that no summary covers, and at least the last ``at_least`` ones."""
    where = (
        "conversation = ?1 AND seq >= min("
        "coalesce((SELECT min(seq) FROM messages WHERE conversation = ?1 AND summarized_by IS NULL), 9e18), "
        "coalesce((SELECT min(seq) FROM (SELECT seq FROM messages WHERE conversation = ?1 "
        "ORDER BY seq DESC LIMIT ?2)), 9e18))"
    )
    return [_loaded(row) for row in load_all(_Row, _select(connection, where, (conversation, at_least)))]


def set_tokens(connection: apsw.Connection, counts: Mapping[int, int]) -> None:
    """Write token counts by ``seq``, for lines that came from elsewhere without any."""
    connection.executemany(
        "UPDATE messages SET tokens = ? WHERE seq = ?", [(n, seq) for seq, n in counts.items()]
    )


class _Row(StoredMessage, frozen=True, kw_only=True):
    """As stored: SQLite has no booleans."""

    failed: int  # type: ignore[assignment]


def _select(
    connection: apsw.Connection, where: str, values: tuple[object, ...], tail: str = ""
) -> apsw.Cursor:
    return connection.execute(
        f"SELECT {columns(StoredMessage)} FROM messages WHERE {where} ORDER BY seq {tail}", values
    )


def _loaded(row: _Row) -> StoredMessage:
    values = {name: getattr(row, name) for name in row.__struct_fields__}
    return StoredMessage(**values | {"failed": bool(row.failed)})
