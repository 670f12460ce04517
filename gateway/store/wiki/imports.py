"""SQL of an import: what is known already, what a dump has met, what it no longer has, and tidy indexes after it.

Everything is done in pieces that hold the writer lock for a fraction of a second: the server may be running.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import apsw
from msgspec import Struct

from gateway.store.rows import load_all
from gateway.store.wiki.pages import delete_title

# Kilobytes of cache for the connection that writes; the default of 2 MB makes merges read what was just written.
_CACHE_KB = 24 * 1024
_INDEXES = ("wiki_text", "wiki_name_words", "wiki_name_trigrams")
# Work of one merge step in pages of the index (4 kB each).
_MERGE_PAGES = 250
_DELETED_AT_ONCE = 200


class Known(Struct, frozen=True):
    """A stored name. ``revision`` and ``extractor`` are None for a redirect."""

    name: str
    target: str
    revision: int | None
    extractor: int | None


def known_names(connection: apsw.Connection, titles: Iterable[str], origin: str) -> dict[str, Known]:
    """Those of the titles that are stored and of that origin."""
    rows = load_all(
        Known,
        connection.execute(
            "SELECT wiki_names.name, wiki_names.target, wiki_pages.revision, wiki_pages.extractor "
            # CROSS JOIN: first the titles, then their rows; the planner would go through all names of the origin.
            "FROM json_each(?) AS wanted CROSS JOIN wiki_names ON wiki_names.name = wanted.value "
            "LEFT JOIN wiki_pages ON wiki_pages.title = wiki_names.name WHERE wiki_names.origin = ?",
            (json.dumps(list(titles)), origin),
        ),
    )
    return {row.name: row for row in rows}


def begin_bulk(connection: apsw.Connection) -> None:
    """Prepare the writing connection for much work."""
    connection.pragma("cache_size", -_CACHE_KB)


def add_seen(connection: apsw.Connection, titles: Iterable[str]) -> None:
    """Remember titles that the dump has."""
    connection.executemany(
        "INSERT OR IGNORE INTO wiki_import_seen VALUES (?)", ((title,) for title in titles)
    )


def forget_seen(connection: apsw.Connection) -> bool:
    """Forget some of the remembered titles; False when none is left."""
    connection.execute(
        "DELETE FROM wiki_import_seen WHERE title IN (SELECT title FROM wiki_import_seen LIMIT 5000)"
    )
    return connection.changes() > 0


def delete_unseen(connection: apsw.Connection, origin: str, after: int) -> tuple[int, int]:
    """Remove some names of that origin that the dump does not have, in the order of their ids.

    Returns the last id looked at, to go on behind it, and how many were removed; (0, 0) at the end.
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
    """Names in the store by origin, without that one."""
    rows = connection.execute(
        "SELECT origin, count(*) FROM wiki_names WHERE origin <> ? GROUP BY origin ORDER BY origin", (origin,)
    )
    return {str(found): int(count) for found, count in rows}


def tidy(connection: apsw.Connection, index: int, *, first: bool) -> bool:
    """One step of merging a search index into a single piece, which is what searches read fastest.

    ``index`` counts from 0 to :data:`INDEX_COUNT` - 1. False when there is nothing more to do for it.
    """
    name = _INDEXES[index]
    before = connection.total_changes()
    # A negative number starts a merge of all pieces, positive ones go on with it (FTS5 documentation, 6.8).
    pages = -_MERGE_PAGES if first else _MERGE_PAGES
    connection.execute(f"INSERT INTO {name} ({name}, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes() - before >= 2


INDEX_COUNT = len(_INDEXES)
