"""SQL of the durable queue: work that a message causes, stored with it, done once in effect.

A job's result and its end are written in one transaction by whoever runs it (:func:`finish_job`). A job that was
running when the program died is taken up again (:func:`release_all_jobs`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, get_args

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.store.rows import as_json, select_one

JobKind = Literal["compact", "facts", "tasks"]

ALL_KINDS: tuple[JobKind, ...] = get_args(JobKind)

# Jobs that may be leased at some time, of the kinds and not of the conversations that are given as JSON arrays.
_OPEN = (
    "state IN ('waiting', 'running') AND kind IN (SELECT value FROM json_each(:kinds)) "
    "AND conversation NOT IN (SELECT value FROM json_each(:busy))"
)
# From when on: a lease that has run out is that of a job that could not be put back.
_DUE = "CASE state WHEN 'waiting' THEN not_before ELSE leased_until END"
# The row of a job as this run has leased it.
_MINE = "seq = ? AND state = 'running' AND attempts = ?"


class Job(Struct, frozen=True, kw_only=True):
    """One piece of work. ``attempts`` counts the runs that have begun, this one included."""

    seq: int
    kind: JobKind
    conversation: str
    payload: dict[str, Any]
    attempts: int
    not_before: float  # Unix seconds
    problem: str | None  # of the last run
    created_at: float


class LostJobError(HearthError):
    """The job is not this run's any more."""

    status = 409
    code = "lost_job"


def add_job(
    connection: apsw.Connection,
    kind: JobKind,
    conversation: str,
    *,
    now: float,
    payload: dict[str, Any] | None = None,
    not_before: float = 0.0,
) -> None:
    """Queue work, unless the same kind is waiting for this conversation: that one will take this in."""
    connection.execute(
        "INSERT INTO jobs (kind, conversation, payload, state, attempts, not_before, created_at) "
        "VALUES (?, ?, ?, 'waiting', 0, ?, ?) ON CONFLICT DO NOTHING",
        (kind, conversation, as_json(payload or {}), not_before, now),
    )


def lease_job(
    connection: apsw.Connection,
    *,
    now: float,
    seconds: float,
    kinds: Collection[JobKind] = ALL_KINDS,
    busy: Collection[str] = (),
) -> Job | None:
    """Take the oldest job of these ``kinds`` that may run now, of a conversation that is not in ``busy``."""
    found = select_one(
        connection,
        Job,
        f"jobs WHERE {_OPEN} AND {_DUE} <= :now ORDER BY not_before, seq LIMIT 1",
        {"now": now, **_arrays(kinds, busy)},
    )
    if found is None:
        return None
    connection.execute(
        "UPDATE jobs SET state = 'running', attempts = attempts + 1, leased_until = ? WHERE seq = ?",
        (now + seconds, found.seq),
    )
    return msgspec.structs.replace(found, attempts=found.attempts + 1)


def next_job_at(
    connection: apsw.Connection, *, kinds: Collection[JobKind] = ALL_KINDS, busy: Collection[str] = ()
) -> float | None:
    """When :func:`lease_job` may find the next one (Unix seconds), None when there is none."""
    query = f"SELECT min({_DUE}) FROM jobs WHERE {_OPEN}"
    found: float | None = connection.execute(query, _arrays(kinds, busy)).get
    return found


def finish_job(connection: apsw.Connection, job: Job) -> None:
    """End a job; run it in the transaction that writes its result. Raises LostJobError: then write nothing."""
    connection.execute("DELETE FROM jobs WHERE " + _MINE, (job.seq, job.attempts))
    _check_mine(connection)


def put_back_job(connection: apsw.Connection, job: Job, *, not_before: float, problem: str | None) -> None:
    """Let a job wait again: it was interrupted (``problem`` None; this run does not count) or it failed.

    When another of its kind has come to wait meanwhile, that one takes its place.
    """
    waiting = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM jobs WHERE conversation = ? AND kind = ? AND state = 'waiting')",
        (job.conversation, job.kind),
    ).get
    if waiting:
        finish_job(connection, job)
        return
    attempts = job.attempts if problem else job.attempts - 1
    connection.execute(
        "UPDATE jobs SET state = 'waiting', leased_until = NULL, attempts = ?, not_before = ?, "
        f"problem = coalesce(?, problem) WHERE {_MINE}",
        (attempts, not_before, problem, job.seq, job.attempts),
    )
    _check_mine(connection)


def release_all_jobs(connection: apsw.Connection) -> int:
    """After a start: whatever ran when the program ended waits again. Returns how many there were."""
    connection.execute(
        "DELETE FROM jobs WHERE state = 'running' AND EXISTS (SELECT 1 FROM jobs AS other "
        "WHERE other.conversation = jobs.conversation AND other.kind = jobs.kind AND other.state = 'waiting')"
    )
    replaced = connection.changes()
    connection.execute("UPDATE jobs SET state = 'waiting', leased_until = NULL WHERE state = 'running'")
    return replaced + connection.changes()


def watermark(connection: apsw.Connection, conversation: str, kind: Literal["facts", "tasks"]) -> int:
    """``seq`` of the last message that work of this kind has taken in, 0 for none."""
    found: int | None = connection.execute(
        "SELECT through FROM watermarks WHERE conversation = ? AND kind = ?", (conversation, kind)
    ).get
    return found or 0


def set_watermark(
    connection: apsw.Connection, conversation: str, kind: Literal["facts", "tasks"], through: int
) -> None:
    """Move the watermark forward; it never goes back."""
    connection.execute(
        "INSERT INTO watermarks (conversation, kind, through) VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET through = max(through, excluded.through)",
        (conversation, kind, through),
    )


def _arrays(kinds: Collection[JobKind], busy: Collection[str]) -> dict[str, str]:
    """The values of :data:`_OPEN`."""
    return {"kinds": as_json(list(kinds)), "busy": as_json(list(busy))}


def _check_mine(connection: apsw.Connection) -> None:
    if not connection.changes():
        raise LostJobError("the job was taken up by another run, or erased with its conversation")
