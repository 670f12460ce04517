"""SQL of summaries. Rows are append-only; a newer one supersedes those that it folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import apsw
from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.store.rows import exists, insert, newest, select, select_one

# ``now``, ``today`` and ``month`` are the tiers of the policy ``ceiling``; ``round`` is the rolling summary of
# ``rounds``; ``conversation`` is that of ``window`` and of each episode of ``conversations``, whose summaries are
# folded into a ``reflection``. ``message`` stands in for a single large message and is not part of the chain.
SummaryLevel = Literal["round", "conversation", "now", "today", "month", "reflection", "message"]

# ``prompt_name`` of a summary that consists of sentences picked from its source.
EXTRACT = "extract"


class NewSummary(Struct, frozen=True, kw_only=True):
    """A summary of the messages ``first`` to ``last`` (``seq``, inclusive) of a conversation.

    ``text`` is plain text, or JSON when the policy asks for variables. ``pins`` are source lines for what the text
    lost. ``tokens`` counts both. Times are those of the first and the last message.
    """

    conversation: str
    level: SummaryLevel
    first: int
    last: int
    from_time: float
    to_time: float
    text: str
    pins: list[str]
    tokens: int
    prompt_name: str
    prompt_version: int
    model: str
    created_at: float


class Summary(NewSummary, frozen=True, kw_only=True):
    """A stored summary, live until another one supersedes it."""

    seq: int
    superseded_by: int | None


class StaleSummaryError(HearthError, status=409, code="stale_summary"):
    """Another summary has covered or replaced the source meanwhile."""


def add_summary(connection: apsw.Connection, summary: NewSummary, folds: Sequence[int] = ()) -> int:
    """Store a summary that supersedes ``folds``, and mark the messages that it is the first to cover.

    Returns its ``seq``. Raises StaleSummaryError when a summary in ``folds`` is no longer live, or when the span
    overlaps a live summary that is not in ``folds``: nothing is summarized twice.
    """
    seq = insert(connection, "summaries", summary)
    for old in folds:
        connection.execute(
            "UPDATE summaries SET superseded_by = ? WHERE seq = ? AND conversation = ? AND superseded_by IS NULL",
            (seq, old, summary.conversation),
        )
        if not connection.changes():
            raise StaleSummaryError("a summary that was to be folded has been replaced meanwhile")
    if summary.level != "message":
        _check_chain(connection, summary)
        connection.execute(
            "UPDATE messages SET summarized_by = ? "
            "WHERE conversation = ? AND seq BETWEEN ? AND ? AND summarized_by IS NULL",
            (seq, summary.conversation, summary.first, summary.last),
        )
    return seq


def live_summaries(connection: apsw.Connection, conversation: str) -> list[Summary]:
    """The live summaries, in the order of their spans."""
    source = "summaries WHERE conversation = ? AND superseded_by IS NULL ORDER BY first, seq"
    return select(connection, Summary, source, (conversation,))


def superseded_between(
    connection: apsw.Connection, conversation: str, begin: float, end: float
) -> list[Summary]:
    """Superseded summaries of messages from ``begin`` until before ``end``, without those that another one of them
    has folded or that were only written again, oldest first."""
    within = (
        "conversation = ?1 AND superseded_by IS NOT NULL AND level <> 'message' "
        "AND from_time >= ?2 AND to_time < ?3"
    )
    again = (
        "SELECT 1 FROM summaries AS new WHERE new.seq = old.superseded_by "
        "AND (new.first, new.last) = (old.first, old.last)"
    )
    return select(
        connection,
        Summary,
        f"summaries AS old WHERE {within} AND superseded_by NOT IN (SELECT seq FROM summaries WHERE {within}) "
        f"AND NOT EXISTS ({again}) "
        "ORDER BY first, seq",
        (conversation, begin, end),
    )


def save_current_summary(connection: apsw.Connection, summary: NewSummary) -> None:
    """Replace the summary of the whole conversation. Raises StaleSummaryError when its messages were erased."""
    if not exists(
        connection, "messages WHERE conversation = ? AND seq = ?", (summary.conversation, summary.last)
    ):
        raise StaleSummaryError("the messages were erased while they were summarized")
    connection.execute("DELETE FROM current_summaries WHERE conversation = ?", (summary.conversation,))
    insert(connection, "current_summaries", summary)


def current_summary(connection: apsw.Connection, conversation: str) -> NewSummary | None:
    """The summary of the whole conversation up to its ``last`` message, as it was last brought up to date."""
    return select_one(connection, NewSummary, "current_summaries WHERE conversation = ?", (conversation,))


def list_summaries(
    connection: apsw.Connection, conversation: str, *, limit: int, before: int | None = None
) -> list[Summary]:
    """All summaries, superseded ones included, newest first; the cursor ``before`` is a ``seq``."""
    source = "summaries WHERE conversation = ?"
    return newest(connection, Summary, source, (conversation,), "seq", limit, before)


def unsummarize(connection: apsw.Connection, conversation: str, first: int) -> None:
    """Delete each summary that may contain the message ``first`` (``seq``) or a later one.

    The messages that they covered are summarized again. A summary contains nothing after its span, and the summaries
    it folds, which are live again, end no later than it does.
    """
    for table in ("summaries", "current_summaries"):
        connection.execute(f"DELETE FROM {table} WHERE conversation = ? AND last >= ?", (conversation, first))
    connection.execute(
        "UPDATE messages SET summarized_by = (SELECT min(summaries.seq) FROM summaries WHERE level <> 'message' "
        "AND summaries.conversation = messages.conversation AND messages.seq BETWEEN first AND last) "
        "WHERE conversation = ?",
        (conversation,),
    )


def _check_chain(connection: apsw.Connection, summary: NewSummary) -> None:
    """No other live summary of the chain may overlap the new one."""
    overlapping = connection.execute(
        "SELECT count(*) FROM summaries WHERE conversation = ? AND superseded_by IS NULL AND level <> 'message' "
        "AND first <= ? AND last >= ?",
        (summary.conversation, summary.last, summary.first),
    ).get
    if overlapping > 1:  # itself
        raise StaleSummaryError("a part of these messages has been summarized meanwhile")
