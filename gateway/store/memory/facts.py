"""SQL of facts, which have versions: a change ends a row and adds another one.

The versions of a fact share its ``id``. A newer fact supersedes the live one of the same key and scope, a deletion ends
it, and undo reverts the last change. Facts read from a conversation are erased with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal
from uuid import uuid4

import apsw
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.store.fts import any_of, words
from gateway.store.rows import as_json, column, insert, newest, select, select_existing, select_one
from gateway.store.vectors import can_search

Scope = Literal["owner", "channel", "project"]


class NewFact(Struct, frozen=True, kw_only=True):
    """A fact to store; ``scope_id`` is the conversation of a channel or the id of a project, otherwise ""."""

    owner: str
    scope: Scope = "owner"
    scope_id: str = ""
    key: str
    text: str
    quote: str = ""
    conversation: str | None = None
    message: int | None = None
    reason: str
    valid_from: float
    redactions: int = 0  # secrets redacted from its text


class Fact(NewFact, frozen=True, kw_only=True):
    """One version of a fact; it is live until ``ended_at``."""

    seq: int
    id: str
    ended_at: float | None
    superseded_by: int | None


def put_fact(connection: apsw.Connection, new: NewFact) -> Fact | None:
    """Store a fact, superseding the live one of the same key; None when that one says the same, or was said later."""
    old = live_fact(connection, new.owner, (new.scope, new.scope_id), new.key)
    if old is not None:
        same = " ".join(old.text.split()).casefold() == " ".join(new.text.split()).casefold()
        if same or (old.message or 0) > (new.message or math.inf):
            return None
        connection.execute("UPDATE facts SET ended_at = ? WHERE seq = ?", (new.valid_from, old.seq))
    name = old.id if old is not None else str(uuid4())
    seq = insert(connection, "facts", new, id=name)
    if old is not None:
        connection.execute("UPDATE facts SET superseded_by = ? WHERE seq = ?", (seq, old.seq))
    return get_fact(connection, name, new.owner)


def live_fact(connection: apsw.Connection, owner: str, scope: tuple[Scope, str], key: str) -> Fact | None:
    """The fact that holds for a key now."""
    source = "facts WHERE owner = ? AND scope = ? AND scope_id = ? AND key = ? AND ended_at IS NULL"
    return select_one(connection, Fact, source, (owner, *scope, key))


def facts_of_message(connection: apsw.Connection, owner: str, message: int) -> list[Fact]:
    """The live facts that a message (``seq``) stated."""
    source = "facts WHERE owner = ? AND message = ? AND ended_at IS NULL"
    return select(connection, Fact, source, (owner, message))


def ended_quotes(connection: apsw.Connection, owner: str, message: int) -> list[str]:
    """Quotes from a message (``seq``) whose facts have ended: forgotten, denied or superseded."""
    query = "SELECT quote FROM facts WHERE owner = ? AND message = ? AND ended_at IS NOT NULL"
    return column(connection, query, (owner, message))


def end_fact(connection: apsw.Connection, fact: str, owner: str, *, now: float, reason: str) -> Fact:
    """Delete a fact: its live version ends. Raises NotFoundError."""
    live = get_fact(connection, fact, owner)
    if live.ended_at is not None:
        return live
    connection.execute("UPDATE facts SET ended_at = ?, reason = ? WHERE seq = ?", (now, reason, live.seq))
    return get_fact(connection, fact, owner)


def undo_fact(connection: apsw.Connection, fact: str, owner: str) -> Fact | None:
    """Revert the last change of a fact; returns its live version, None after reverting its creation.

    Raises NotFoundError, and InvalidRequestError when another fact has its key now.
    """
    last = get_fact(connection, fact, owner)
    if last.ended_at is not None:
        taken = live_fact(connection, owner, (last.scope, last.scope_id), last.key)
        if taken is not None:
            raise InvalidRequestError(f"the fact `{taken.id}` has the key `{last.key}` now; delete it first")
        connection.execute("UPDATE facts SET ended_at = NULL WHERE seq = ?", (last.seq,))
        return get_fact(connection, fact, owner)
    connection.execute("DELETE FROM facts WHERE seq = ?", (last.seq,))
    connection.execute(
        "UPDATE facts SET ended_at = NULL, superseded_by = NULL "
        "WHERE seq = (SELECT max(seq) FROM facts WHERE id = ? AND owner = ?)",
        (fact, owner),
    )
    return select_one(
        connection, Fact, "facts WHERE id = ? AND owner = ? AND ended_at IS NULL", (fact, owner)
    )


def get_fact(connection: apsw.Connection, fact: str, owner: str) -> Fact:
    """The latest version of the owner's fact. Raises NotFoundError."""
    source = "facts WHERE id = ? AND owner = ? ORDER BY seq DESC LIMIT 1"
    return select_existing(connection, Fact, source, (fact, owner), f"there is no fact `{fact[:100]}`")


def list_facts(
    connection: apsw.Connection, owner: str, *, limit: int, before: int | None = None, ended: bool = False
) -> list[Fact]:
    """The owner's live facts, with ``ended`` all versions, newest first; the cursor ``before`` is a ``seq``."""
    source = "facts WHERE owner = ? AND (? OR ended_at IS NULL)"
    return newest(connection, Fact, source, (owner, ended), "seq", limit, before)


def facts_in_scope(
    connection: apsw.Connection, owner: str, scopes: Sequence[tuple[Scope, str]], limit: int
) -> list[Fact]:
    """Live facts of these scopes, newest first."""
    where, values = in_scope(owner, scopes, limit)
    return select(connection, Fact, f"facts WHERE {where} ORDER BY seq DESC LIMIT ?3", values)


def count_in_scope(connection: apsw.Connection, owner: str, scopes: Sequence[tuple[Scope, str]]) -> int:
    where, values = in_scope(owner, scopes, 0)
    found: int = connection.execute(f"SELECT count(*) FROM facts WHERE {where}", values[:2]).get
    return found


def search_facts(
    connection: apsw.Connection, owner: str, scopes: Sequence[tuple[Scope, str]], text: str, limit: int
) -> list[Fact]:
    """Live facts of these scopes that share words with ``text``, best first (BM25, then newest)."""
    wanted = words(text)
    if not wanted:
        return []
    where, values = in_scope(owner, scopes, limit)
    return select(
        connection,
        Fact,
        "(SELECT rowid, rank AS score FROM fact_words WHERE fact_words MATCH ?4) "
        f"JOIN facts ON seq = rowid WHERE {where} ORDER BY score, seq DESC LIMIT ?3",
        (*values, any_of(wanted)),
    )


def in_scope(owner: str, scopes: Sequence[tuple[Scope, str]], limit: int) -> tuple[str, tuple[str, str, int]]:
    """A condition for live facts of these scopes, and its parameters: 1 and 2, with the limit as 3."""
    where = (
        "owner = ?1 AND ended_at IS NULL AND scope || ':' || scope_id IN (SELECT value FROM json_each(?2))"
    )
    return where, (owner, as_json([f"{scope}:{name}" for scope, name in scopes]), limit)


def pending_facts(connection: apsw.Connection, after: int, limit: int) -> list[Fact]:
    """Live facts without a vector after ``seq`` ``after``, in order."""
    return select(
        connection,
        Fact,
        "facts WHERE seq > ? AND ended_at IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM fact_vectors WHERE fact = seq) ORDER BY seq LIMIT ?",
        (after, limit),
    )


def put_fact_vector(
    connection: apsw.Connection, fact: int, vector: bytes | None, problem: str | None
) -> None:
    """Store a fact's vector, or why it has none; do nothing if the fact was erased meanwhile."""
    connection.execute(
        "INSERT OR REPLACE INTO fact_vectors SELECT seq, ?, ? FROM facts WHERE seq = ?",
        (vector, problem, fact),
    )


def count_fact_vectors(connection: apsw.Connection) -> tuple[int, int, int]:
    """Number of live facts that are processed, of those that failed, and of all."""
    counts: tuple[int, int, int] = connection.execute(
        "SELECT count(fact), count(problem), count(*) FROM facts LEFT JOIN fact_vectors ON fact = seq "
        "WHERE ended_at IS NULL"
    ).get
    return counts


def facts_near(
    connection: apsw.Connection,
    space: str,
    owner: str,
    scopes: Sequence[tuple[Scope, str]],
    vector: bytes,
    limit: int,
    max_distance: float,
) -> list[Fact] | None:
    """Live facts of these scopes near the vector, nearest first; None when the stored vectors are of another space."""
    if not can_search(connection, space):
        return None
    where, values = in_scope(owner, scopes, limit)
    return select(
        connection,
        Fact,
        "(SELECT facts.*, vec_distance_cosine(vector, ?4) AS distance "
        f"FROM facts JOIN fact_vectors ON fact = seq WHERE vector IS NOT NULL AND {where}) "
        "WHERE distance <= ?5 ORDER BY distance, seq DESC LIMIT ?3",
        (*values, vector, max_distance),
    )
