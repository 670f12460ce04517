"""SQL of the local wiki: pages, their names, and the import of a dump.

Every step of an import holds the writer lock for a fraction of a second only, because the server may be running.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

import apsw
import msgspec
from msgspec import Struct

from gateway.store.fts import title_key
from gateway.store.rows import as_json, column, exists, insert, load, select, select_one

# Page cache of the writing connection; with the default of 2 MB, merges read back what was just written.
_CACHE_KB = 24 * 1024
INDEXES = ("wiki_text", "wiki_name_words", "wiki_name_trigrams")
_DELETED_AT_ONCE = 200

# Redirects may be chained, although MediaWiki discourages it; a longer chain is a loop.
MAX_REDIRECTS = 8


class Name(Struct, frozen=True):
    """A name of a page: its own title, or a redirect (``target`` differs from ``name``)."""

    name: str
    key: str
    target: str


class PageRow(Struct, frozen=True):
    """A stored page; ``sections`` is JSON, ``origin`` says what it was imported from."""

    id: int
    title: str
    revision: int
    sections: str
    origin: str


class NewPage(Struct, frozen=True, kw_only=True):
    """A page to store. ``sections`` is JSON, ``headings`` and ``body`` are indexed, ``size`` is in bytes.

    ``extractor`` is the version of the text extraction, ``sketch`` identifies near-copies.
    """

    title: str
    revision: int
    sections: str
    headings: str
    body: str
    size: int
    extractor: int
    sketch: bytes


def put_page(connection: apsw.Connection, page: NewPage, origin: str) -> None:
    """Insert the page, replacing a page or redirect of that title."""
    delete_title(connection, page.title)
    row = msgspec.structs.asdict(page)
    text = {"title": page.title, "headings": row.pop("headings"), "body": row.pop("body")}
    row |= {"bytes": row.pop("size"), "updated_at": time.time(), "origin": origin}
    insert(connection, "wiki_text", {"rowid": insert(connection, "wiki_pages", row), **text})
    _put_name(connection, page.title, page.title, origin)


def put_redirect(connection: apsw.Connection, title: str, target: str, origin: str) -> None:
    """Insert the redirect, replacing a page or redirect of that title; one to itself is not stored."""
    delete_title(connection, title)
    if title != target:
        _put_name(connection, title, target, origin)


def delete_title(connection: apsw.Connection, title: str) -> None:
    """Delete the page or redirect of exactly this title, if there is one."""
    page = connection.execute("SELECT id FROM wiki_pages WHERE title = ?", (title,)).get
    if page is not None:
        connection.execute("DELETE FROM wiki_text WHERE rowid = ?", (page,))
        connection.execute("DELETE FROM wiki_pages WHERE id = ?", (page,))
    connection.execute("DELETE FROM wiki_names WHERE name = ?", (title,))


def names_of(connection: apsw.Connection, origin: str) -> dict[str, str]:
    """Every name of that origin and its target."""
    return dict(connection.execute("SELECT name, target FROM wiki_names WHERE origin = ?", (origin,)))


def has_other_origin(connection: apsw.Connection, origin: str) -> bool:
    """Whether anything in the store is not of that origin."""
    return exists(connection, "wiki_names WHERE origin <> ?", (origin,))


def count_pages(connection: apsw.Connection) -> int:
    """Pages in the store, redirects not counted."""
    return int(connection.execute("SELECT count(*) FROM wiki_pages").get)


def subjects(connection: apsw.Connection, limit: int) -> list[str]:
    """Titles of pages that the wiki says much about: those with the most redirects, then the longest.

    Left out are titles that make no question: lists, subpages, namespaces, and those with digits or signs.
    """
    return column(
        connection,
        "SELECT title FROM wiki_pages JOIN wiki_names ON target = title"
        " WHERE title NOT GLOB '*[0-9:/()\"#_]*' AND title NOT LIKE 'list %' AND length(title) BETWEEN 3 AND 32"
        " AND title GLOB '*[a-z]*' GROUP BY title ORDER BY count(*) DESC, bytes DESC LIMIT ?",
        (limit,),
    )


def get_state(connection: apsw.Connection, name: str) -> str | None:
    """A stored value, such as which sample is loaded."""
    value = connection.execute("SELECT value FROM wiki_state WHERE name = ?", (name,)).get
    return None if value is None else str(value)


def states(connection: apsw.Connection, prefix: str) -> list[str]:
    """The stored values whose names begin with ``prefix``, by name."""
    query = "SELECT value FROM wiki_state WHERE substr(name, 1, ?) = ? ORDER BY name"
    return column(connection, query, (len(prefix), prefix))


def set_state(connection: apsw.Connection, name: str, value: str) -> None:
    connection.execute("INSERT OR REPLACE INTO wiki_state VALUES (?, ?)", (name, value))


def drop_state(connection: apsw.Connection, name: str) -> None:
    connection.execute("DELETE FROM wiki_state WHERE name = ?", (name,))


def names_by_key(connection: apsw.Connection, key: str) -> list[Name]:
    """Names equal under :func:`gateway.store.fts.title_key`, pages before redirects."""
    return select(connection, Name, "wiki_names WHERE key = ? ORDER BY target <> name, name", (key,))


def resolve(connection: apsw.Connection, name: str) -> str | None:
    """Title of the page that ``name`` leads to; None for a dead end or a loop."""
    for _ in range(MAX_REDIRECTS + 1):
        # The name itself, otherwise one that differs in case, spacing or width; pages before redirects.
        alike = names_by_key(connection, title_key(name))
        found = next((each for each in alike if each.name == name), None) or next(iter(alike), None)
        if found is None:
            return None
        if found.target == found.name:
            return found.name
        name = found.target
    return None


def page(connection: apsw.Connection, title: str) -> PageRow | None:
    """The page of exactly this title."""
    return select_one(connection, PageRow, "wiki_pages WHERE title = ?", (title,))


def _put_name(connection: apsw.Connection, name: str, target: str, origin: str) -> None:
    row = {"name": name, "key": title_key(name), "target": target, "origin": origin}
    insert(connection, "wiki_names", row)


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
