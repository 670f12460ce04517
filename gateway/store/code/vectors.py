"""SQL of the vectors of definitions and sections. A search compares the query with all vectors of the project."""

from __future__ import annotations

import apsw
from msgspec import Struct

from gateway.store.code.graph import Hit
from gateway.store.rows import load_all
from gateway.store.vectors import can_search


class PendingPart(Struct, frozen=True):
    """A part without a vector; ``signature`` and ``doc`` are those of its definition."""

    id: int
    title: str
    root: str
    path: str
    line: int
    end_line: int
    is_code: bool
    signature: str
    doc: str


def pending_parts(connection: apsw.Connection, after: int, limit: int) -> list[PendingPart]:
    """Parts after id ``after`` without a vector, in order."""
    rows = connection.execute(
        "SELECT p.id, p.title, root.path, f.path, p.line, p.end_line, f.module <> '', coalesce(d.signature, ''), "
        "coalesce(d.doc, '') FROM code_parts AS p JOIN code_files AS f ON f.id = p.file "
        "JOIN code_projects AS root ON root.id = f.project LEFT JOIN code_definitions AS d ON d.id = "
        "(SELECT id FROM code_definitions WHERE file = p.file AND line = p.line AND end_line = p.end_line "
        "AND kind <> 'lambda' ORDER BY ordinal DESC LIMIT 1) "
        "WHERE p.id > ? AND NOT EXISTS (SELECT 1 FROM code_vectors WHERE part = p.id) ORDER BY p.id LIMIT ?",
        (after, limit),
    )
    return load_all(PendingPart, rows)


def put_part_vector(
    connection: apsw.Connection, part: PendingPart, vector: bytes | None, problem: str | None
) -> None:
    """Store a part's vector, or why it has none; do nothing if the part is gone."""
    connection.execute(
        "INSERT OR REPLACE INTO code_vectors SELECT id, ?, ? FROM code_parts WHERE id = ? AND title = ?",
        (vector, problem, part.id, part.title),
    )


def count_part_vectors(connection: apsw.Connection) -> tuple[int, int, int]:
    """Number of parts that are processed, of those that failed, and of all."""
    done, failed, total = connection.execute(
        "SELECT count(*), count(problem), (SELECT count(*) FROM code_parts) FROM code_vectors"
    ).get
    return int(done), int(failed), int(total)


def parts_near(
    connection: apsw.Connection, project: str, space: str, vector: bytes, limit: int, max_distance: float
) -> list[Hit] | None:
    """Parts near the vector, nearest first; None when the stored vectors are of another space."""
    if not can_search(connection, space):
        return None
    rows = connection.execute(
        "SELECT path, line, end_line, iif(module = '', 'document', 'code') FROM (SELECT path, p.line, p.end_line, "
        "module, vec_distance_cosine(vector, ?) AS distance FROM code_files AS f JOIN code_parts AS p "
        "ON p.file = f.id JOIN code_vectors AS v ON v.part = p.id WHERE project = ? AND vector IS NOT NULL) "
        "WHERE distance <= ? ORDER BY distance, path, line LIMIT ?",
        (vector, project, max_distance, limit),
    )
    return load_all(Hit, rows)
