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
# What a page with all words gains. A long page has them anywhere: a better one with fewer may go before it.
_ALL_WORDS = 0.03


def search_text(connection: apsw.Connection, term: str, limit: int) -> list[PageRef]:
    """Pages with significant words of the term, best first, without near-copies; those with all words are favoured.

    Ignores stop words, punctuation, and words that a large part of a large wiki has. When the term has only such
    frequent words, titles and headings decide.
    """
    words = fts.words(term)
    if not words or limit < 1:
        return []
    hits = _hits(connection, words, limit + _SPARE)
    scored = ((hit.title, bonus + _unit(hit.rank), hit.sketch) for hit, bonus in hits)
    return distinct(sorted(scored, key=lambda each: -each[1]), limit)


def _hits(
    connection: apsw.Connection, words: list[str], limit: int
) -> Iterator[tuple[search.TextHit, float]]:
    """Hits with what their score gains beside their rank."""
    significant = search.text_words(connection, words)
    if not significant:
        for match in dict.fromkeys((fts.all_of(words), fts.any_of(words))):
            for hit in search.pages_by_text(connection, fts.in_title_or_heading(match), limit):
                yield hit, _ALL_WORDS * (match == fts.all_of(words))
        yield from ((hit, 0.0) for hit in search.pages_with(connection, fts.all_of(words), limit))
        return
    near = fts.near_each_other(significant) if len(significant) > 1 else ""
    for match, bonus in ((fts.all_of(significant), _ALL_WORDS), (fts.any_of(significant), 0.0)):
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
