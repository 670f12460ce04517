"""SQL of the pages that were fetched from a wiki's API: those used last are kept, by title and revision."""

from __future__ import annotations

import apsw
import msgspec
from msgspec import Struct

from gateway.store.rows import insert, select_one

# Using a page again within so many seconds is not worth a write.
_TOUCH_SECONDS = 3600.0


class FetchedPage(Struct, frozen=True):
    """A page; ``sections`` is JSON, ``sketch`` tells near-copies."""

    title: str
    revision: int
    url: str
    sketch: bytes
    sections: str


class Totals(Struct, frozen=True):
    """What is kept: pages, and the bytes of their sections."""

    pages: int
    bytes: int


def keep_only(connection: apsw.Connection, wiki: str, reader: int) -> Totals:
    """Drop what is of another wiki, or was read by another version of the program; what is left."""
    connection.execute("DELETE FROM wiki_fetched WHERE wiki <> ? OR reader <> ?", (wiki, reader))
    return _totals(connection)


def get_fetched(
    connection: apsw.Connection, wiki: str, title: str, revision: int, now: float
) -> tuple[FetchedPage, bool] | None:
    """The page of that wiki at that revision, and whether its use should be noted (:func:`touch_fetched`)."""
    values = (wiki, title, revision)
    source = "wiki_fetched WHERE wiki = ? AND title = ? AND revision = ?"
    page = select_one(connection, FetchedPage, source, values)
    if page is None:
        return None
    used_at: float = connection.execute(f"SELECT used_at FROM {source}", values).get
    return page, now - used_at > _TOUCH_SECONDS


def touch_fetched(connection: apsw.Connection, title: str, now: float) -> None:
    """Note a use."""
    connection.execute("UPDATE wiki_fetched SET used_at = ? WHERE title = ?", (now, title))


def put_fetched(
    connection: apsw.Connection, page: FetchedPage, *, wiki: str, reader: int, now: float, max_bytes: int
) -> Totals:
    """Keep the page instead of what has its title; the longest unused ones beyond ``max_bytes`` go."""
    size = len(page.sections.encode())
    connection.execute("DELETE FROM wiki_fetched WHERE title = ?", (page.title,))
    row = {"wiki": wiki, "reader": reader, "bytes": size, "updated_at": now, "used_at": now}
    insert(connection, "wiki_fetched", msgspec.structs.asdict(page) | row)
    totals = _totals(connection)
    if totals.bytes <= max_bytes:
        return totals
    connection.execute(
        "DELETE FROM wiki_fetched WHERE id IN (SELECT id FROM (SELECT id, "
        "sum(bytes) OVER (ORDER BY used_at DESC, id DESC) AS running FROM wiki_fetched) WHERE running > ?)",
        (max_bytes,),
    )
    return _totals(connection)


def drop_fetched(connection: apsw.Connection, title: str) -> Totals:
    """Forget the page of that title."""
    connection.execute("DELETE FROM wiki_fetched WHERE title = ?", (title,))
    return _totals(connection)


def has_fetched(connection: apsw.Connection, title: str) -> bool:
    """Whether a page of that title is kept, at whatever revision."""
    return bool(
        connection.execute("SELECT EXISTS (SELECT 1 FROM wiki_fetched WHERE title = ?)", (title,)).get
    )


def fetched_sketch(connection: apsw.Connection, title: str) -> bytes:
    """The sketch of the page of exactly this title; empty when it is not kept."""
    found = connection.execute("SELECT sketch FROM wiki_fetched WHERE title = ?", (title,)).get
    return found if isinstance(found, bytes) else b""


def _totals(connection: apsw.Connection) -> Totals:
    pages, size = connection.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM wiki_fetched").get
    return Totals(int(pages), int(size))
