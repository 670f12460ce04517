"""SQL of rounds: the log by rounds, and marks on what a client reports as failed."""

from __future__ import annotations

from itertools import groupby

import apsw
from msgspec import Struct

from gateway.base.errors import NotFoundError
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.summaries import unsummarize
from gateway.store.rows import as_json, select


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
