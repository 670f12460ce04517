"""SQL of page vectors. Imported and fetched pages have tables of the same form.

A search compares the query with every vector, at 0.75 µs each with 256 dimensions (docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw
from msgspec import Struct

from gateway.store.rows import column, exists, load, select
from gateway.store.vectors import PageTables, can_search, make_table, use_extension
from gateway.store.wiki.search import TextHit

# Passages per search; a page may have several near a query.
_PASSAGES = 256
_SWEPT_AT_ONCE = 2000
_BYTES_A_NUMBER = 4  # float32


class PendingPage(Struct, frozen=True):
    """A page without vectors; ``sections`` is JSON. ``updated_at`` distinguishes pages that reuse an id."""

    id: int
    title: str
    updated_at: float
    sections: str


def pending_pages(
    connection: apsw.Connection, tables: PageTables, cutter: int, after: int, limit: int
) -> list[PendingPage]:
    """Pages after id ``after`` without vectors of this ``cutter``, in order."""
    return select(
        connection,
        PendingPage,
        # The inner query stays within indexes; page texts are read only for the rows it selects.
        f"{tables.pages} WHERE id IN (SELECT pages.id FROM "
        f"{tables.pages} AS pages LEFT JOIN {tables.embedded} AS done ON done.page = pages.id "
        "WHERE pages.id > ?1 AND done.cutter IS NOT ?2 ORDER BY pages.id LIMIT ?3) ORDER BY id",
        (after, cutter, limit),
    )


def put_page_vectors(
    connection: apsw.Connection,
    tables: PageTables,
    page: PendingPage,
    cutter: int,
    sections: Sequence[int],
    vectors: Sequence[bytes],
    problem: str | None,
) -> None:
    """Store a page's vectors, each with the index of its section; do nothing if the page has changed."""
    source = f"{tables.pages} WHERE id = ? AND title = ? AND updated_at = ?"
    if not exists(connection, source, (page.id, page.title, page.updated_at)):
        return
    use_extension(connection)
    connection.execute(f"DELETE FROM {tables.embedded} WHERE page = ?", (page.id,))
    connection.execute(f"INSERT INTO {tables.embedded} VALUES (?, ?, ?)", (page.id, cutter, problem))
    if vectors:
        make_table(connection, tables, len(vectors[0]) // _BYTES_A_NUMBER)
    for section, vector in zip(sections, vectors, strict=True):
        connection.execute(f"INSERT INTO {tables.passages} (page, section) VALUES (?, ?)", (page.id, section))
        connection.execute(
            f"INSERT INTO {tables.vectors} (passage, vector) VALUES (?, ?)",
            (connection.last_insert_rowid(), vector),
        )


def count_embedded(connection: apsw.Connection, tables: PageTables, cutter: int) -> tuple[int, int, int]:
    """Number of pages that are processed, of those that failed, and of all."""
    every = f"SELECT count(*) FROM {tables.pages}"
    query = f"SELECT count(*), count(problem), ({every}) FROM {tables.embedded} WHERE cutter = ?"
    counts: tuple[int, int, int] = connection.execute(query, (cutter,)).get
    return counts


def has_pages_and_passages(connection: apsw.Connection, tables: PageTables) -> tuple[bool, bool]:
    """Whether there are pages, and passages with a vector."""
    return exists(connection, tables.pages), exists(connection, tables.passages)


def sweep_vectors(connection: apsw.Connection, tables: PageTables) -> bool:
    """Delete some vectors of deleted passages; False when none is left."""
    gone = column(connection, f"SELECT id FROM {tables.gone} LIMIT ?", (_SWEPT_AT_ONCE,))
    if not gone:
        return False
    use_extension(connection)
    connection.executemany(f"DELETE FROM {tables.vectors} WHERE passage = ?", ((each,) for each in gone))
    connection.executemany(f"DELETE FROM {tables.gone} WHERE id = ?", ((each,) for each in gone))
    return True


class NearHit(TextHit, frozen=True):
    """A page found by a vector; ``section`` is the index of the section with the nearest passage."""

    section: int


def pages_near(
    connection: apsw.Connection,
    tables: PageTables,
    space: str,
    vector: bytes,
    limit: int,
    max_distance: float,
) -> list[NearHit] | None:
    """Pages with a passage near the vector, nearest first; ``rank`` is the cosine distance, from 0 to 2.

    None when the stored vectors are of another space.
    """
    if not can_search(connection, space):
        return None
    # SQLite takes the section from the row with the smallest distance.
    query = (
        "SELECT pages.title, min(found.distance), pages.sketch, passages.section FROM "
        f"(SELECT passage, distance FROM {tables.vectors} WHERE vector MATCH ? AND k = ?) AS found "
        f"JOIN {tables.passages} AS passages ON passages.id = found.passage "
        f"JOIN {tables.pages} AS pages ON pages.id = passages.page "
        "WHERE found.distance <= ? GROUP BY pages.id ORDER BY min(found.distance), pages.title LIMIT ?"
    )
    return load(connection, NearHit, query, (vector, _PASSAGES, max_distance, limit))
