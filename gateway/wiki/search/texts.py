"""Full-text search: BM25 over title, headings and text, and over the redirects that lead to a page."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from gateway.store import fts
from gateway.store.wiki import pages as store
from gateway.store.wiki import search
from gateway.wiki.sketch import distinct
from gateway.wiki.source import PageRef

# More pages are ranked than wanted: some are near-copies, and a redirect's name may move a page up.
_SPARE = 12
_REDIRECTS = 20


def search_text(connection: apsw.Connection, term: str, limit: int) -> list[PageRef]:
    """Pages with all significant words of the term, then pages with some, without near-copies.

    Ignores stop words, punctuation, and words that a large part of a large wiki has. When the term has only such
    frequent words, titles and headings decide.
    """
    words = fts.words(term)
    if not words or limit < 1:
        return []
    hits = _hits(connection, words, limit + _SPARE)
    return distinct(((hit.title, bonus + _unit(hit.rank), hit.sketch) for hit, bonus in hits), limit)


def _hits(connection: apsw.Connection, words: list[str], limit: int) -> Iterator[tuple[search.TextHit, int]]:
    """Hits by descending score, which is a bonus plus the rank."""
    significant = search.text_words(connection, words)
    if not significant:
        for match in dict.fromkeys((fts.all_of(words), fts.any_of(words))):
            for hit in search.pages_by_text(connection, fts.in_title_or_heading(match), limit):
                yield hit, match == fts.all_of(words)
        yield from ((hit, 0) for hit in search.pages_with(connection, fts.all_of(words), limit))
        return
    near = fts.near_each_other(significant) if len(significant) > 1 else ""
    for match, bonus in ((fts.all_of(significant), 1), (fts.any_of(significant), 0)):
        for hit in _ranked(connection, match, limit, near):
            yield hit, bonus
        if len(significant) == 1:
            return


def _ranked(connection: apsw.Connection, match: str, limit: int, near: str) -> list[search.TextHit]:
    """Pages by text and what is ``near`` in it, with the rank of their best redirect added like another column's."""
    hits = {hit.title: hit for hit in search.pages_by_text(connection, match, limit, near)}
    seen = set()
    for name, rank in search.redirects_by_words(connection, match, _REDIRECTS):
        title = store.resolve(connection, name)
        if title is not None and title not in seen:
            seen.add(title)
            hit = hits.get(title) or search.TextHit(title, 0.0, search.sketch_of(connection, title))
            hits[title] = search.TextHit(title, hit.rank + rank, hit.sketch)
    return sorted(hits.values(), key=lambda hit: (hit.rank, hit.title))


def _unit(rank: float) -> float:
    """Map bm25 (negative, smaller is better) to a score between 0 and 1."""
    strength = max(0.0, -rank)
    return strength / (1.0 + strength)
