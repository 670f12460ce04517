"""Finding pages by what they say: BM25 over title, headings and text, and over the redirects that lead to them."""

from __future__ import annotations

from collections.abc import Iterator

import apsw

from gateway.store import fts
from gateway.store.wiki import pages as store
from gateway.store.wiki import search
from gateway.wiki.sketch import SeenTexts
from gateway.wiki.source import PageRef

# More are ranked than are wanted: some fold into others, and a redirect's name may move a page up.
_SPARE = 12
_REDIRECTS = 20


def search_text(connection: apsw.Connection, term: str, limit: int) -> list[PageRef]:
    """Pages with all telling words of the term, then pages with some; no page or copy of one twice.

    Stop words and other than words are ignored, and so are words that a large part of a large wiki has, unless
    there is nothing else: then titles and headings decide.
    """
    words = fts.words(term)
    if not words or limit < 1:
        return []
    texts = SeenTexts()
    found: dict[str, float] = {}
    for hit, bonus in _hits(connection, words, limit + _SPARE):
        if hit.title not in found and texts.add(hit.sketch):
            found[hit.title] = bonus + _unit(hit.rank)
            if len(found) >= limit:
                break
    return [PageRef(title, score) for title, score in found.items()]


def _hits(connection: apsw.Connection, words: list[str], limit: int) -> Iterator[tuple[search.TextHit, int]]:
    """Hits in the order of their scores, which are made of a whole number and the rank."""
    telling = search.text_words(connection, words)
    if not telling:
        for match in dict.fromkeys((fts.all_of(words), fts.any_of(words))):
            for hit in search.pages_by_text(connection, fts.in_title_or_heading(match), limit):
                yield hit, match == fts.all_of(words)
        yield from ((hit, 0) for hit in search.pages_with(connection, fts.all_of(words), limit))
        return
    for match, bonus in ((fts.all_of(telling), 1), (fts.any_of(telling), 0)):
        for hit in _ranked(connection, match, limit):
            yield hit, bonus
        if len(telling) == 1:
            return


def _ranked(connection: apsw.Connection, match: str, limit: int) -> list[search.TextHit]:
    """Pages by text and by redirects. The name of a redirect is a field like the others: its rank adds up."""
    hits = {hit.title: hit for hit in search.pages_by_text(connection, match, limit)}
    seen = set()
    for name, rank in search.redirects_by_words(connection, match, _REDIRECTS):
        title = store.resolve(connection, name)
        if title is not None and title not in seen:  # the best of its redirects counts
            seen.add(title)
            hit = hits.get(title) or search.TextHit(title, 0.0, search.sketch_of(connection, title))
            hits[title] = search.TextHit(title, hit.rank + rank, hit.sketch)
    return sorted(hits.values(), key=lambda hit: (hit.rank, hit.title))


def _unit(rank: float) -> float:
    """bm25 (negative, smaller is better) as a score between 0 and 1."""
    strength = max(0.0, -rank)
    return strength / (1.0 + strength)
