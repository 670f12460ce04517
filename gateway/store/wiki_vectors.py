"""SQL of the vectors of wiki pages: which pages wait for theirs, storing them, and the pages nearest to one.

Vectors are compared one by one with the query's. With 256 dimensions that takes three quarters of a microsecond each
(docs/benchmarks.md).
"""

from __future__ import annotations

from collections.abc import Sequence

import apsw
from msgspec import Struct

from gateway.store.rows import columns, load_all
from gateway.store.vectors import PASSAGE_TABLE, get_space, use_extension
from gateway.store.wiki_search import TextHit

# A page may have many passages near a query: more are looked at than pages are wanted.
_PASSAGES = 256
_SWEPT_AT_ONCE = 2000


class PendingPage(Struct, frozen=True):
    """A page that waits for its vectors; ``sections`` is JSON. ``updated_at`` tells it from a later one of its id."""

    id: int
    title: str
    updated_at: float
    sections: str


def pending_pages(connection: apsw.Connection, cutter: int, after: int, limit: int) -> list[PendingPage]:
    """Pages behind id ``after`` that have no vectors, or some of another ``cutter``, in the order of their ids."""
    return load_all(
        PendingPage,
        connection.execute(
            # The inner query stays within indexes; page texts are read for the rows that come out of it.
            f"SELECT {columns(PendingPage)} FROM wiki_pages WHERE id IN (SELECT wiki_pages.id FROM wiki_pages "
            "LEFT JOIN wiki_embedded ON wiki_embedded.page = wiki_pages.id WHERE wiki_pages.id > ?1 "
            "AND wiki_embedded.cutter IS NOT ?2 ORDER BY wiki_pages.id LIMIT ?3) ORDER BY id",
            (after, cutter, limit),
        ),
    )


def put_page_vectors(
    connection: apsw.Connection,
    page: PendingPage,
    cutter: int,
    sections: Sequence[int],
    vectors: Sequence[bytes],
    problem: str | None,
) -> None:
    """Store the vectors of a page, each with the index of its section; nothing when the page is not that any more."""
    known = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM wiki_pages WHERE id = ? AND title = ? AND updated_at = ?)",
        (page.id, page.title, page.updated_at),
    ).get
    if not known:
        return
    use_extension(connection)
    connection.execute("DELETE FROM wiki_embedded WHERE page = ?", (page.id,))
    connection.execute("INSERT INTO wiki_embedded VALUES (?, ?, ?)", (page.id, cutter, problem))
    for section, vector in zip(sections, vectors, strict=True):
        connection.execute("INSERT INTO wiki_passages (page, section) VALUES (?, ?)", (page.id, section))
        connection.execute(
            f"INSERT INTO {PASSAGE_TABLE} (passage, vector) VALUES (?, ?)",
            (connection.last_insert_rowid(), vector),
        )


def count_embedded(connection: apsw.Connection, cutter: int) -> tuple[int, int, int]:
    """Pages that are done, those of them that have no vectors because of a problem, and all pages."""
    done, failed = connection.execute(
        "SELECT count(*), count(problem) FROM wiki_embedded WHERE cutter = ?", (cutter,)
    ).fetchone() or (0, 0)
    return int(done), int(failed), int(connection.execute("SELECT count(*) FROM wiki_pages").get)


def sweep_vectors(connection: apsw.Connection) -> bool:
    """Remove some vectors of passages that are gone; False when none is left."""
    gone = [
        row[0] for row in connection.execute("SELECT id FROM wiki_passages_gone LIMIT ?", (_SWEPT_AT_ONCE,))
    ]
    if not gone:
        return False
    use_extension(connection)
    connection.executemany(f"DELETE FROM {PASSAGE_TABLE} WHERE passage = ?", ((each,) for each in gone))
    connection.executemany("DELETE FROM wiki_passages_gone WHERE id = ?", ((each,) for each in gone))
    return True


def pages_near(
    connection: apsw.Connection, space: str, vector: bytes, limit: int, max_distance: float
) -> list[TextHit] | None:
    """Pages with a passage near the vector, nearest first; ``rank`` is the cosine distance, from 0 to 2.

    None when the stored vectors are of another space.
    """
    known = get_space(connection)
    if known is None or known.name != space:
        return None
    use_extension(connection)
    return load_all(
        TextHit,
        connection.execute(
            "SELECT wiki_pages.title, min(found.distance), wiki_pages.sketch FROM "
            f"(SELECT passage, distance FROM {PASSAGE_TABLE} WHERE vector MATCH ? AND k = ?) AS found "
            "JOIN wiki_passages ON wiki_passages.id = found.passage "
            "JOIN wiki_pages ON wiki_pages.id = wiki_passages.page "
            "WHERE found.distance <= ? GROUP BY wiki_pages.id "
            "ORDER BY min(found.distance), wiki_pages.title LIMIT ?",
            (vector, _PASSAGES, max_distance, limit),
        ),
    )
