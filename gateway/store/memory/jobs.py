"""SQL of the durable queue: work for a conversation or a run, stored with its cause, done once in effect.

A runner renews its jobs' leases, and writes a job's result and its end in one transaction (:func:`finish_job`). A job
whose runner died runs again once its lease has expired, or after the start of the only gateway
(:func:`release_all_jobs`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Literal, TypeVar, get_args

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import HearthError
from gateway.store.rows import as_json, exists, select, select_one

JobKind = Literal["compact", "facts", "tasks", "fresh", "run"]

T = TypeVar("T")
ALL_KINDS: tuple[JobKind, ...] = get_args(JobKind)

# Jobs of ``kinds`` whose subjects are not ``busy``; both are JSON arrays.
_OPEN = (
    "state IN ('waiting', 'running') AND kind IN (SELECT value FROM json_each(:kinds)) "
    "AND subject NOT IN (SELECT value FROM json_each(:busy))"
)
# When a job may be leased. A lease expires if its gateway died, or could not put the job back.
_DUE = "CASE state WHEN 'waiting' THEN not_before ELSE leased_until END"
# The row of a job as this run has leased it.
_MINE = "seq = ? AND state = 'running' AND attempts = ?"


class Job(Struct, frozen=True, kw_only=True):
    """One piece of work for ``subject``, the id of a conversation, or of a run of tasks if that is the kind.

    ``attempts`` counts the runs that have started, this one included.
    """

    seq: int
    kind: JobKind
    subject: str
    attempts: int
    not_before: float  # Unix seconds
    problem: str | None  # of the last run
    created_at: float


class LostJobError(HearthError, status=409, code="lost_job"):
    """Another run has leased the job, or its subject was erased."""


def add_job(connection: apsw.Connection, kind: JobKind, subject: str, *, now: float) -> None:
    """Queue work, unless a job of the kind waits for this subject: that one will cover it."""
    connection.execute(
        "INSERT INTO jobs (kind, subject, payload, state, attempts, not_before, created_at) "
        "VALUES (?, ?, '{}', 'waiting', 0, 0.0, ?) ON CONFLICT DO NOTHING",
        (kind, subject, now),
    )


def make_due(connection: apsw.Connection, kind: JobKind, subject: str) -> None:
    """Let a waiting job run now, which may have been postponed."""
    connection.execute(
        "UPDATE jobs SET not_before = 0.0 WHERE kind = ? AND subject = ? AND state = 'waiting'",
        (kind, subject),
    )


def lease_job(
    connection: apsw.Connection,
    take: Callable[[str], T | None],
    *,
    now: float,
    seconds: float,
    kinds: Collection[JobKind] = ALL_KINDS,
    busy: Collection[str] = (),
) -> tuple[Job, T] | None:
    """Lease the oldest due job of these ``kinds`` for ``seconds``, and what ``take`` returns for its subject.

    Subjects in ``busy`` are passed over, and those for which ``take`` returns None.

    Compactions come first: the next prompts need them, and each exchange brings other jobs. ``fresh`` comes last.
    """
    due = f"jobs WHERE {_OPEN} AND {_DUE} <= :now ORDER BY kind <> 'compact', kind = 'fresh', not_before, seq LIMIT 1"
    passed = set(busy)
    while True:
        found = select_one(connection, Job, due, {"now": now, **_arrays(kinds, passed)})
        if found is None:
            return None
        if (taken := take(found.subject)) is not None:
            break
        passed.add(found.subject)
    connection.execute(
        "UPDATE jobs SET state = 'running', attempts = attempts + 1, leased_until = ? WHERE seq = ?",
        (now + seconds, found.seq),
    )
    return msgspec.structs.replace(found, attempts=found.attempts + 1), taken


def renew_jobs(connection: apsw.Connection, jobs: Iterable[Job], *, until: float) -> None:
    """Extend the leases of running jobs; those of other runs stay as they are."""
    for job in jobs:
        connection.execute(f"UPDATE jobs SET leased_until = ? WHERE {_MINE}", (until, job.seq, job.attempts))


def next_job_at(
    connection: apsw.Connection, *, kinds: Collection[JobKind] = ALL_KINDS, busy: Collection[str] = ()
) -> float | None:
    """When the next job is due (Unix seconds); None when none waits."""
    query = f"SELECT min({_DUE}) FROM jobs WHERE {_OPEN}"
    found: float | None = connection.execute(query, _arrays(kinds, busy)).get
    return found


def open_jobs(connection: apsw.Connection, conversation: str) -> list[Job]:
    """The conversation's jobs that wait or run."""
    return select(connection, Job, "jobs WHERE conversation = ?", (conversation,))


def finish_job(connection: apsw.Connection, job: Job) -> None:
    """End a job, in the transaction that writes its result. Raises LostJobError, which must roll that back."""
    connection.execute("DELETE FROM jobs WHERE " + _MINE, (job.seq, job.attempts))
    _check_mine(connection)


def put_back_job(connection: apsw.Connection, job: Job, *, not_before: float, problem: str | None) -> None:
    """Queue a leased job again. It failed, or was interrupted (``problem`` None), which is not counted as an attempt.

    If another job of its kind has been queued meanwhile, this one ends. Raises LostJobError.
    """
    waiting = "jobs WHERE subject = ? AND kind = ? AND state = 'waiting'"
    if exists(connection, waiting, (job.subject, job.kind)):
        finish_job(connection, job)
        return
    attempts = job.attempts if problem else job.attempts - 1
    connection.execute(
        "UPDATE jobs SET state = 'waiting', leased_until = NULL, attempts = ?, not_before = ?, "
        f"problem = coalesce(?, problem) WHERE {_MINE}",
        (attempts, not_before, problem, job.seq, job.attempts),
    )
    _check_mine(connection)


def release_all_jobs(connection: apsw.Connection, kinds: Collection[JobKind] = ALL_KINDS) -> int:
    """After a start, queue the jobs again that were running when the program ended; returns their number.

    A job that could not be put back still counts as running when the next one of its kind has begun: one of them stays.
    """
    mine, values = "state = 'running' AND kind IN (SELECT value FROM json_each(?))", (as_json(list(kinds)),)
    connection.execute(
        f"DELETE FROM jobs WHERE {mine} AND EXISTS (SELECT 1 FROM jobs AS other "
        "WHERE other.subject = jobs.subject AND other.kind = jobs.kind "
        "AND (other.state = 'waiting' OR other.state = 'running' AND other.seq > jobs.seq))",
        values,
    )
    replaced = connection.changes()
    connection.execute(f"UPDATE jobs SET state = 'waiting', leased_until = NULL WHERE {mine}", values)
    return replaced + connection.changes()


def watermark(connection: apsw.Connection, conversation: str, kind: Literal["facts", "tasks"]) -> int:
    """``seq`` of the last message that jobs of this kind have read; 0 for none."""
    found: int | None = connection.execute(
        "SELECT through FROM watermarks WHERE conversation = ? AND kind = ?", (conversation, kind)
    ).get
    return found or 0


def set_watermark(
    connection: apsw.Connection, conversation: str, kind: Literal["facts", "tasks"], through: int
) -> None:
    """Raise the watermark; it never falls."""
    connection.execute(
        "INSERT INTO watermarks (conversation, kind, through) VALUES (?, ?, ?) "
        "ON CONFLICT (conversation, kind) DO UPDATE SET through = max(watermarks.through, excluded.through)",
        (conversation, kind, through),
    )


def _arrays(kinds: Collection[JobKind], busy: Collection[str]) -> dict[str, str]:
    """The values of :data:`_OPEN`."""
    return {"kinds": as_json(list(kinds)), "busy": as_json(list(busy))}


def _check_mine(connection: apsw.Connection) -> None:
    if not connection.changes():
        raise LostJobError("the job was taken up by another run, or erased with its subject")
