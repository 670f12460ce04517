"""SQL of the message log, which is append-only except for marks, and of the log by rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Literal

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import HearthError, NotFoundError
from gateway.store.memory.summaries import unsummarize
from gateway.store.rows import as_json, exists, insert, newest, select, select_one

MessageRole = Literal["user", "assistant"]


class NewMessage(Struct, frozen=True, kw_only=True):
    """A message to append.

    ``tokens`` is the model's count of ``text`` as plain text. Prompts and summaries leave out ``failed`` messages.
    ``answers`` is the ``seq`` of the message that a reply answers.
    """

    id: str
    conversation: str
    role: MessageRole
    speaker: str
    text: str  # secrets redacted
    tokens: int
    redactions: int
    created_at: float
    failed: bool = False
    answers: int | None = None


class StoredMessage(NewMessage, frozen=True, kw_only=True):
    """A message of the log. ``seq`` orders the messages of all conversations.

    ``round`` counts from 1 in its conversation; a round is one or several consecutive user messages and the replies.
    """

    seq: int
    round: int
    summarized_by: int | None  # seq of the first summary that covers it


class DuplicateMessageError(HearthError, status=409, code="duplicate_message"):
    """The conversation has another message with this id."""


class UnansweredMessageError(HearthError, status=409, code="conversation_went_on"):
    """The message got no reply, and the assistant has spoken since."""


def add_message(connection: apsw.Connection, message: NewMessage) -> StoredMessage:
    """Append a message; a user's message after a reply starts the next round. Raises DuplicateMessageError."""
    if find_message(connection, message.id, message.conversation) is not None:
        raise DuplicateMessageError(
            f"this conversation has another message with the id `{message.id[:100]}`", param="id"
        )
    last = connection.execute(
        "SELECT round, role FROM messages WHERE conversation = ? ORDER BY seq DESC LIMIT 1",
        (message.conversation,),
    ).get
    round_, role = last or (0, "assistant")
    round_ = round_ + 1 if message.role == "user" and role == "assistant" else max(1, round_)
    seq = insert(connection, "messages", message, round=round_)
    connection.execute(
        "UPDATE conversations SET updated_at = max(updated_at, ?) WHERE id = ?",
        (message.created_at, message.conversation),
    )
    return StoredMessage(**msgspec.structs.asdict(message), seq=seq, round=round_, summarized_by=None)


def find_message(connection: apsw.Connection, message: str, conversation: str) -> StoredMessage | None:
    return select_one(
        connection, StoredMessage, "messages WHERE id = ? AND conversation = ?", (message, conversation)
    )


def line_before(connection: apsw.Connection, message: str, conversation: str) -> str:
    """The question that a message, stored or not yet, may answer: the last line of one of the two before it.

    That is the newer one that ends with a question mark, or else the newest: a reply may stand in between.
    """
    known = find_message(connection, message, conversation)
    before = "messages WHERE conversation = ? AND seq < ? ORDER BY seq DESC LIMIT 2"
    messages = select(connection, StoredMessage, before, (conversation, known.seq if known else 2**62))
    lines = [(each.text.rstrip().splitlines() or [""])[-1] for each in messages]
    return next((line for line in lines if line.endswith("?")), lines[0] if lines else "")


def said_before(connection: apsw.Connection, message: StoredMessage) -> StoredMessage | None:
    """The message that its writer sent before this one, in the same conversation."""
    source = (
        "messages WHERE conversation = ? AND seq < ? AND role = ? AND speaker = ? ORDER BY seq DESC LIMIT 1"
    )
    values = (message.conversation, message.seq, message.role, message.speaker)
    return select_one(connection, StoredMessage, source, values)


def reply_to(connection: apsw.Connection, message: StoredMessage) -> StoredMessage | None:
    """The reply to a message; None while it can still get one.

    Raises UnansweredMessageError when it has none and the assistant has spoken since: the prompt would end with later
    messages, so the model would answer those.
    """
    since = "messages WHERE conversation = ?1 AND seq > ?2 AND role = 'assistant' AND NOT failed"
    values = (message.conversation, message.seq)
    reply = select_one(connection, StoredMessage, f"{since} AND answers = ?2 ORDER BY seq LIMIT 1", values)
    if reply is not None:
        return reply
    if message.failed:
        raise UnansweredMessageError(
            f"the message `{message.id[:100]}` is marked as failed, so prompts leave it out. Send it under a new id.",
            param="id",
        )
    if exists(connection, since, values):
        raise UnansweredMessageError(
            f"the message `{message.id[:100]}` got no reply, and the conversation has gone on since. "
            "Send it again under a new id.",
            param="id",
        )
    return None


def speakers_of(connection: apsw.Connection, seqs: Sequence[int]) -> dict[int, str]:
    """The names of the speakers of these messages, by ``seq``."""
    rows = connection.execute(
        "SELECT seq, speaker FROM messages WHERE seq IN (SELECT value FROM json_each(?))",
        (as_json(list(seqs)),),
    )
    return dict(rows)


def page_of_messages(
    connection: apsw.Connection, conversation: str, *, limit: int, before: int | None = None
) -> list[StoredMessage]:
    """The newest ``limit`` messages before the ``seq`` ``before``, oldest first."""
    source = "messages WHERE conversation = ?"
    return newest(connection, StoredMessage, source, (conversation,), "seq", limit, before)[::-1]


def messages_between(
    connection: apsw.Connection, conversation: str, first: int, last: int
) -> list[StoredMessage]:
    """The messages from ``first`` to ``last`` (``seq``, inclusive), oldest first, failed ones included."""
    source = "messages WHERE conversation = ? AND seq BETWEEN ? AND ? ORDER BY seq"
    return select(connection, StoredMessage, source, (conversation, first, last))


def open_messages(connection: apsw.Connection, conversation: str, at_least: int) -> list[StoredMessage]:
    """The messages for a prompt: all from the first that no summary covers, and at least the last ``at_least``."""
    return select(
        connection,
        StoredMessage,
        "messages WHERE conversation = ?1 AND seq >= min("
        "coalesce((SELECT min(seq) FROM messages WHERE conversation = ?1 AND summarized_by IS NULL), 9e18), "
        "coalesce((SELECT min(seq) FROM (SELECT seq FROM messages WHERE conversation = ?1 "
        "ORDER BY seq DESC LIMIT ?2) AS newest), 9e18)) ORDER BY seq",
        (conversation, at_least),
    )


def restore_text(
    connection: apsw.Connection,
    message: str,
    conversation: str,
    stored: str,
    text: str,
    tokens: int,
    count: int,
) -> StoredMessage:
    """Store the ``text`` that a message had before ``count`` secrets were redacted from it. Raises NotFoundError."""
    connection.execute(
        "UPDATE messages SET text = ?, tokens = ?, redactions = redactions - ? "
        "WHERE id = ? AND conversation = ? AND text = ?",
        (text, tokens, count, message, conversation, stored),
    )
    found = find_message(connection, message, conversation) if connection.changes() else None
    if found is None:
        raise NotFoundError(f"the message `{message}` is not there any more", param="message")
    return found


def set_tokens(connection: apsw.Connection, counts: Mapping[int, int]) -> None:
    """Store token counts by ``seq``."""
    connection.executemany(
        "UPDATE messages SET tokens = ? WHERE seq = ?", [(n, seq) for seq, n in counts.items()]
    )


class Round(Struct, frozen=True):
    """The messages of a round. It ``failed`` if all of them did."""

    round: int
    failed: bool
    summarized: bool
    messages: list[StoredMessage]


def list_rounds(
    connection: apsw.Connection, conversation: str, *, limit: int, before: int | None = None
) -> list[Round]:
    """The newest ``limit`` rounds before the round ``before``, oldest first."""
    rows = select(
        connection,
        StoredMessage,
        "messages WHERE conversation = ?1 AND round IN (SELECT DISTINCT round FROM messages WHERE conversation = ?1 "
        "AND (?2 IS NULL OR round < ?2) ORDER BY round DESC LIMIT ?3) ORDER BY seq",
        (conversation, before, limit),
    )
    return [_round(list(lines)) for _, lines in groupby(rows, key=lambda row: row.round)]


def mark_failed(
    connection: apsw.Connection,
    conversation: str,
    failed: bool,
    *,
    message: str | None = None,
    number: int | None = None,
) -> Round:
    """Mark a message by its id, or a whole round by its number; returns the marked messages as a round.

    Summaries that contain a changed message are deleted with all later ones, so that the rest is summarized again.
    Raises NotFoundError.
    """
    marked = "messages WHERE conversation = ?1 AND (id = ?2 OR round = ?3) ORDER BY seq"
    values = (conversation, message, number)
    rows = select(connection, StoredMessage, marked, values)
    if not rows:
        what, field = (f"message `{message[:100]}`", "message") if message else (f"round {number}", "round")
        raise NotFoundError(f"there is no {what} in this conversation", param=field)
    if changed := [row.seq for row in rows if row.failed != failed]:
        # An incomplete reply has no count, and one that changes back is counted at its next use.
        connection.execute(
            "UPDATE messages SET failed = ?1, tokens = iif(?1, tokens, -1) "
            "WHERE seq IN (SELECT value FROM json_each(?2))",
            (failed, as_json(changed)),
        )
        unsummarize(connection, conversation, changed[0])
    return _round(select(connection, StoredMessage, marked, values))


def _round(messages: list[StoredMessage]) -> Round:
    return Round(
        messages[0].round,
        all(each.failed for each in messages),
        all(each.summarized_by is not None for each in messages),
        messages,
    )
