"""SQL of an import: compare a dump's titles with the stored ones, delete missing ones.

Every step holds the writer lock for a fraction of a second only, because the server may be running.
"""

from __future__ import annotations

from collections.abc import Iterable

import apsw
from msgspec import Struct

from gateway.store.rows import as_json, load
from gateway.store.wiki.pages import delete_title

# Page cache of the writing connection; with the default of 2 MB, merges read back what was just written.
_CACHE_KB = 24 * 1024
INDEXES = ("wiki_text", "wiki_name_words", "wiki_name_trigrams")
_DELETED_AT_ONCE = 200


class Known(Struct, frozen=True):
    """A stored name. ``revision`` and ``extractor`` are None for a redirect."""

    name: str
    target: str
    revision: int | None
    extractor: int | None


def known_names(connection: apsw.Connection, titles: Iterable[str], origin: str) -> dict[str, Known]:
    """The titles that are stored with that origin."""
    # CROSS JOIN fixes the order: titles first; the planner would scan all names of the origin.
    query = (
        "SELECT wiki_names.name, wiki_names.target, wiki_pages.revision, wiki_pages.extractor "
        "FROM json_each(?) AS wanted CROSS JOIN wiki_names ON wiki_names.name = wanted.value "
        "LEFT JOIN wiki_pages ON wiki_pages.title = wiki_names.name WHERE wiki_names.origin = ?"
    )
    return {row.name: row for row in load(connection, Known, query, (as_json(list(titles)), origin))}


def begin_bulk(connection: apsw.Connection) -> None:
    connection.pragma("cache_size", -_CACHE_KB)


def add_seen(connection: apsw.Connection, titles: Iterable[str]) -> None:
    """Record titles that the dump has."""
    connection.executemany(
        "INSERT OR IGNORE INTO wiki_import_seen VALUES (?)", ((title,) for title in titles)
    )


def forget_seen(connection: apsw.Connection) -> bool:
    """Delete some of the recorded titles; False when none is left."""
    connection.execute(
        "DELETE FROM wiki_import_seen WHERE title IN (SELECT title FROM wiki_import_seen LIMIT 5000)"
    )
    return connection.changes() > 0


def delete_unseen(connection: apsw.Connection, origin: str, after: int) -> tuple[int, int]:
    """Delete some names of that origin after id ``after`` that the dump does not have.

    Returns the last deleted id, to continue after it, and the number of deletions; (0, 0) at the end.
    """
    rows = connection.execute(
        "SELECT id, name FROM wiki_names WHERE origin = ? AND id > ? "
        "AND NOT EXISTS (SELECT 1 FROM wiki_import_seen WHERE title = wiki_names.name) ORDER BY id LIMIT ?",
        (origin, after, _DELETED_AT_ONCE),
    ).fetchall()
    last = 0
    for number, name in rows:
        delete_title(connection, str(name))
        last = int(str(number))
    return last, len(rows)


def other_origins(connection: apsw.Connection, origin: str) -> dict[str, int]:
    """Number of names by origin, without that one."""
    rows = connection.execute(
        "SELECT origin, count(*) FROM wiki_names WHERE origin <> ? GROUP BY origin ORDER BY origin", (origin,)
    )
    return dict(rows)
