"""SQL of fact vectors.

An owner has few facts, so their vectors are plain rows, erased with their facts.
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from gateway.store.memory.facts import Fact, Scope, in_scope
from gateway.store.rows import select
from gateway.store.vectors import can_search


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
