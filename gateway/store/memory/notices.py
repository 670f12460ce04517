"""SQL of notices: what runs have to say to their owners, and to the webhook."""

from __future__ import annotations

import apsw
from msgspec import Struct

from gateway.store.rows import select, select_one

_HOOK_SECONDS = 86_400.0


class Notice(Struct, frozen=True, kw_only=True):
    """Something to be said to the owner of ``task``."""

    seq: int
    task: str
    text: str
    source: str
    created_at: float

    @property
    def breakpoint(self) -> int | None:
        """The id of the BREAKPOINT that it is about."""
        kind, _, number = self.source.partition(" ")
        return int(number) if kind == "breakpoint" else None


class HookedNotice(Notice, frozen=True, kw_only=True):
    """A notice for the webhook."""

    owner: str
    hook_attempts: int


def breakpoint_source(number: int) -> str:
    """The ``source`` of a BREAKPOINT's notice."""
    return f"breakpoint {number}"


def add_notice(
    connection: apsw.Connection,
    owner: str,
    task: str,
    text: str,
    source: str,
    now: float,
    *,
    hook: bool = True,
) -> None:
    """Leave a notice, once for each ``source``; with ``hook`` the webhook gets it too."""
    connection.execute(
        "INSERT INTO notices (owner, task, text, source, created_at, hook_at) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT DO NOTHING",
        (owner, task, text, source, now, now if hook else None),
    )


def due_hook(connection: apsw.Connection, now: float) -> HookedNotice | None:
    """The next notice for the webhook; those of before the last day are too old."""
    source = "notices WHERE hook_at <= ? AND created_at > ? ORDER BY hook_at, seq LIMIT 1"
    return select_one(connection, HookedNotice, source, (now, now - _HOOK_SECONDS))


def save_hook(connection: apsw.Connection, seq: int, attempts: int, again: float | None) -> None:
    """Record an attempt, and when the next one is due, if at all."""
    connection.execute(
        "UPDATE notices SET hook_attempts = ?, hook_at = ? WHERE seq = ?", (attempts, again, seq)
    )


def unseen_notices(connection: apsw.Connection, owner: str) -> list[Notice]:
    return select(connection, Notice, "notices WHERE owner = ? AND shown_at IS NULL ORDER BY seq", (owner,))


def see_notices(connection: apsw.Connection, owner: str, last: int, now: float) -> None:
    """Mark the owner's notices up to ``last`` as shown."""
    connection.execute(
        "UPDATE notices SET shown_at = ? WHERE owner = ? AND seq <= ? AND shown_at IS NULL",
        (now, owner, last),
    )
