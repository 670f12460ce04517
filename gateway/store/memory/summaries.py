"""SQL of summaries: rows are only added; a newer one takes the place of those that it folds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import apsw
from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.store.rows import insert, select

# ``now``, ``today`` and ``month`` are the tiers of the policy ``ceiling``, the newer the more detailed; ``round`` is
# the rolling summary of ``rounds``; ``conversation`` that of ``window`` and of each finished episode of
# ``conversations``, whose summaries flow into a ``reflection``. ``message`` stands in for a single message that is
# too large for any prompt; it is no part of the chain.
SummaryLevel = Literal["round", "conversation", "now", "today", "month", "reflection", "message"]


class NewSummary(Struct, frozen=True, kw_only=True):
    """A summary of the messages ``first`` to ``last`` (``seq``, both included) of a conversation.

    ``text`` is plain text, or JSON when the policy asks for variables. ``pins`` are lines kept verbatim because
    the text had lost what they say. ``tokens`` counts both. Times are those of the first and the last message.
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
    """A stored summary; it is live until another one supersedes it."""

    seq: int
    superseded_by: int | None


class StaleSummaryError(HearthError):
    """What the summary was made from has been summarized by another one meanwhile."""

    status = 409
    code = "stale_summary"


def add_summary(connection: apsw.Connection, summary: NewSummary, folds: Sequence[int] = ()) -> int:
    """Store a summary that supersedes the live ones in ``folds``; messages it is the first to cover are marked.

    Returns its ``seq``. Raises StaleSummaryError when a summary in ``folds`` is live no more, or when the span
    has messages that another summary covers and ``folds`` does not have: nothing is summarized twice.
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
    """The summaries that stand for the past at present, in the order of their spans."""
    return select(
        connection,
        Summary,
        "summaries WHERE conversation = ? AND superseded_by IS NULL ORDER BY first, seq",
        (conversation,),
    )


def list_summaries(
    connection: apsw.Connection, conversation: str, *, limit: int, before: int | None = None
) -> list[Summary]:
    """All summaries ever made, the newest first; ``before`` is the ``seq`` of the last one seen."""
    return select(
        connection,
        Summary,
        "summaries WHERE conversation = ?1 AND (?2 IS NULL OR seq < ?2) ORDER BY seq DESC LIMIT ?3",
        (conversation, before, limit),
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
