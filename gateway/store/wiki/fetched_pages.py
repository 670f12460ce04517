"""SQL of the cache of pages fetched from a wiki's API, which evicts the least recently used."""

from __future__ import annotations

import apsw
from msgspec import Struct

from gateway.store.rows import exists, insert, select_one

# A use within this time of the last noted one is not worth a write.
_TOUCH_SECONDS = 3600.0


class FetchedPage(Struct, frozen=True):
    """A page; ``sections`` is JSON, ``sketch`` identifies near-copies."""

    title: str
    revision: int
    url: str
    sketch: bytes
    sections: str


class Totals(Struct, frozen=True):
    """Cached pages, and the bytes of their sections."""

    pages: int
    bytes: int


def keep_only(connection: apsw.Connection, wiki: str, reader: int) -> Totals:
    """Drop pages of another wiki or another version of the reader; returns the rest."""
    connection.execute("DELETE FROM wiki_fetched WHERE wiki <> ? OR reader <> ?", (wiki, reader))
    return _totals(connection)


def get_fetched(
    connection: apsw.Connection, wiki: str, title: str, revision: int, now: float
) -> tuple[FetchedPage, bool] | None:
    """The page at that revision, and whether to note its use with :func:`touch_fetched`."""
    values = (wiki, title, revision)
    source = "wiki_fetched WHERE wiki = ? AND title = ? AND revision = ?"
    page = select_one(connection, FetchedPage, source, values)
    if page is None:
        return None
    used_at: float = connection.execute(f"SELECT used_at FROM {source}", values).get
    return page, now - used_at > _TOUCH_SECONDS


def touch_fetched(connection: apsw.Connection, title: str, now: float) -> None:
    connection.execute("UPDATE wiki_fetched SET used_at = ? WHERE title = ?", (now, title))


def put_fetched(
    connection: apsw.Connection, page: FetchedPage, *, wiki: str, reader: int, now: float, max_bytes: int
) -> Totals:
    """Cache the page in place of its other revisions; evict the least recently used ones beyond ``max_bytes``."""
    size = len(page.sections.encode())
    connection.execute("DELETE FROM wiki_fetched WHERE title = ?", (page.title,))
    more = {"wiki": wiki, "reader": reader, "bytes": size, "updated_at": now, "used_at": now}
    insert(connection, "wiki_fetched", page, **more)
    if _totals(connection).bytes > max_bytes:
        connection.execute(
            "DELETE FROM wiki_fetched WHERE id IN (SELECT id FROM (SELECT id, "
            "sum(bytes) OVER (ORDER BY used_at DESC, id DESC) AS running FROM wiki_fetched) WHERE running > ?)",
            (max_bytes,),
        )
    return _totals(connection)


def drop_fetched(connection: apsw.Connection, title: str) -> Totals:
    connection.execute("DELETE FROM wiki_fetched WHERE title = ?", (title,))
    return _totals(connection)


def has_fetched(connection: apsw.Connection, title: str) -> bool:
    """Whether any revision of the page is cached."""
    return exists(connection, "wiki_fetched WHERE title = ?", (title,))


def fetched_sketch(connection: apsw.Connection, title: str) -> bytes:
    """The sketch of the page; empty when it is not cached."""
    found = connection.execute("SELECT sketch FROM wiki_fetched WHERE title = ?", (title,)).get
    return found if isinstance(found, bytes) else b""


def _totals(connection: apsw.Connection) -> Totals:
    return Totals(*connection.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM wiki_fetched").get)
