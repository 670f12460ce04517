"""SQL of the searches by text and by name. ``match`` expressions must come from :mod:`gateway.store.fts`.

Ranking takes about half a microsecond per matching row, and reading its title a disk access. So rows are ranked inside
the index, only the first ones' titles are read, and very frequent words are dropped from queries that have others
(:func:`text_words`).
"""

from __future__ import annotations

import apsw
from msgspec import Struct

from gateway.store import fts
from gateway.store.rows import columns, load, select
from gateway.store.wiki.pages import Name

# Weights of a match in the title, in a heading, in the text.
_TEXT_WEIGHTS = "12.0, 3.0, 1.0"
_NEAR_WEIGHT = 0.3  # of words that stand near each other in the text
# Maximum rows that one search ranks, in about 10 ms.
_TEXT_ROWS = 20_000
_NAME_ROWS = 5_000


class TextHit(Struct, frozen=True):
    """A page found by its text. ``rank`` is SQLite's bm25, smaller is better; ``sketch`` identifies near-copies."""

    title: str
    rank: float
    sketch: bytes


def text_words(connection: apsw.Connection, words: list[str]) -> list[str]:
    """The words rare enough to rank by, rarest first; none when all are frequent."""
    return rarest(connection, "wiki_text", words, _TEXT_ROWS)


def name_trigrams(connection: apsw.Connection, trigrams: list[str]) -> list[str]:
    """The trigrams rare enough to rank by, rarest first."""
    return rarest(connection, "wiki_name_trigrams", trigrams, _NAME_ROWS)


def pages_by_text(connection: apsw.Connection, match: str, limit: int, near: str = "") -> list[TextHit]:
    """Pages whose title, headings or text match, best first; better if their text matches ``near``."""
    found = f"SELECT rowid AS id, bm25(wiki_text, {_TEXT_WEIGHTS}) AS score FROM wiki_text WHERE wiki_text MATCH ?"
    matches: tuple[str, ...] = (match,)
    if near:
        # Without MATERIALIZED, SQLite searches for what is near once for every row: 0.5 s with 12,000 pages.
        found = (
            "WITH near AS MATERIALIZED "
            "(SELECT rowid AS id, bm25(wiki_text) AS score FROM wiki_text WHERE wiki_text MATCH ?) "
            f"SELECT id, every.score + {_NEAR_WEIGHT} * coalesce(near.score, 0.0) AS score "
            f"FROM ({found}) AS every LEFT JOIN near USING (id)"
        )
        matches = (fts.in_text(near), match)
    return _pages(
        connection, f"{found} ORDER BY score LIMIT ?", "found.score, wiki_pages.title", *matches, limit
    )


def pages_with(connection: apsw.Connection, match: str, limit: int) -> list[TextHit]:
    """Pages that match, unranked (rank 0): for queries of frequent words alone."""
    found = "SELECT rowid AS id, 0.0 AS score FROM wiki_text WHERE wiki_text MATCH ? LIMIT ?"
    return _pages(connection, found, "wiki_pages.id", match, limit)


def redirects_by_words(connection: apsw.Connection, match: str, limit: int) -> list[tuple[str, float]]:
    """Redirects that contain words of ``match`` and their bm25, best first."""
    rows = connection.execute(
        "SELECT wiki_names.name, found.score FROM "
        "(SELECT rowid AS id, bm25(wiki_name_words) AS score FROM wiki_name_words "
        "WHERE wiki_name_words MATCH ? ORDER BY score LIMIT ?) AS found "
        "JOIN wiki_names ON wiki_names.id = found.id WHERE wiki_names.name <> wiki_names.target "
        "ORDER BY found.score, wiki_names.name",
        (match, limit),
    )
    return list(rows)


def names_by_prefix(connection: apsw.Connection, key: str, limit: int) -> list[Name]:
    """Names whose key starts with ``key``, shortest first."""
    return select(
        connection,
        Name,
        "wiki_names WHERE id IN (SELECT id FROM wiki_names WHERE key >= ?1 AND key < ?1 || char(0x10ffff) "
        "ORDER BY length(key), key LIMIT ?2) ORDER BY length(key), key",
        (key, limit),
    )


def names_by_words(connection: apsw.Connection, match: str, limit: int) -> list[Name]:
    """Names that contain the words of ``match``, best first."""
    return _names_in(connection, "wiki_name_words", match, limit)


def names_by_trigrams(connection: apsw.Connection, match: str, limit: int) -> list[Name]:
    """Names that share trigrams with ``match``, best first; most are only vaguely similar."""
    return _names_in(connection, "wiki_name_trigrams", match, limit)


def sketch_of(connection: apsw.Connection, title: str) -> bytes:
    """The sketch of the page of exactly this title; empty when there is none."""
    found = connection.execute("SELECT sketch FROM wiki_pages WHERE title = ?", (title,)).get
    return found if isinstance(found, bytes) else b""


def _pages(connection: apsw.Connection, found: str, order: str, *values: str | int) -> list[TextHit]:
    query = (
        f"SELECT wiki_pages.title, found.score, wiki_pages.sketch FROM ({found}) AS found "
        f"JOIN wiki_pages ON wiki_pages.id = found.id ORDER BY {order}"
    )
    return load(connection, TextHit, query, values)


def rarest(connection: apsw.Connection, index: str, items: list[str], budget: int) -> list[str]:
    """The rarest items whose rows together stay within the budget."""
    counted = []
    for item in items:
        # The limit makes counting cheap for words that are too frequent anyway.
        rows = connection.execute(
            f"SELECT count(*) FROM (SELECT 1 FROM {index} WHERE {index} MATCH ? LIMIT ?)",
            (fts.all_of([item]), budget + 1),
        ).get
        counted.append((int(rows), item))
    chosen, total = [], 0
    for rows, item in sorted(counted, key=lambda pair: pair[0]):
        total += rows
        if total > budget:
            break
        chosen.append(item)
    return chosen


def _names_in(connection: apsw.Connection, index: str, match: str, limit: int) -> list[Name]:
    query = (
        f"SELECT {columns(Name, 'wiki_names.')} FROM "
        f"(SELECT rowid AS id, bm25({index}) AS score FROM {index} WHERE {index} MATCH ? "
        "ORDER BY score LIMIT ?) AS found "
        "JOIN wiki_names ON wiki_names.id = found.id ORDER BY found.score, wiki_names.name"
    )
    return load(connection, Name, query, (match, limit))
