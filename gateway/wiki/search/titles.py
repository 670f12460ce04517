"""Title search: exact names first, then names that begin with, contain or resemble the term."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import chain

import apsw
import msgspec

from gateway.store import fts
from gateway.store.stop_words import STOP_WORDS
from gateway.store.wiki import pages as store
from gateway.store.wiki import search
from gateway.wiki.search.term_names import LONGEST_RUN, bare_forms
from gateway.wiki.sketch import distinct
from gateway.wiki.source import PageRef

# Top score of each kind of match; scores within a kind never fall to the next kind's.
_EXACT, _REDIRECT, _PREFIX, _WORDS, _CONTAINED, _SUBSTRING, _SIMILAR = 1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5

_MAX_TOKENS = 32
_FUZZY_CANDIDATES = 60
_SIMILAR_TERM = 0.72  # difflib ratio from which a whole term counts as a misspelt name
_SIMILAR_WORD = 0.8  # the same for a single word
_SHORTEST_MISSPELT = 5  # letters; shorter words resemble too many names

_Matches = Iterator[tuple[store.Name, float]]


def search_titles(connection: apsw.Connection, term: str, limit: int) -> list[PageRef]:
    """Pages by name, best first, without near-copies. Misspellings count only when nothing else matches."""
    key = fts.title_key(term)
    if not key or limit < 1:
        return []
    words = fts.words(term)
    misspelt = (
        _similar(connection, word, _SIMILAR_WORD) for word in words if len(word) >= _SHORTEST_MISSPELT
    )
    for matches in (
        _matches(connection, key, words, 4 * limit),  # several names may lead to one page
        _similar(connection, key, _SIMILAR_TERM),
        chain.from_iterable(misspelt),
    ):
        redirects: dict[str, str] = {}
        if found := distinct(_pages(connection, matches, redirects), limit):
            return [msgspec.structs.replace(each, redirect=redirects[each.title]) for each in found]
    return []


def _pages(
    connection: apsw.Connection, matches: _Matches, redirects: dict[str, str]
) -> Iterator[tuple[str, float, bytes]]:
    for name, score in matches:
        title = store.resolve(connection, name.name)
        if title is not None and title not in redirects:
            redirects[title] = name.name if name.name != title else ""
            yield title, score, search.sketch_of(connection, title)


def _matches(connection: apsw.Connection, key: str, words: list[str], limit: int) -> _Matches:
    for name in store.names_by_key(connection, key):
        yield name, _EXACT if name.name == name.target else _REDIRECT
    if len(key) > 1:
        yield from _scored(search.names_by_prefix(connection, key, limit), _PREFIX)
    if words:
        yield from _scored(search.names_by_words(connection, fts.all_of(words), limit), _WORDS)
    yield from _scored(_names_inside(connection, key), _CONTAINED)
    if len(key) > 2:
        yield from _scored(search.names_by_trigrams(connection, fts.all_of([key]), limit), _SUBSTRING)


def _scored(names: Iterable[store.Name], top: float) -> _Matches:
    for index, name in enumerate(names):
        yield name, top - min(index, 90) * 0.0005


def _names_inside(connection: apsw.Connection, key: str) -> Iterator[store.Name]:
    """Names that stand in the term as whole words, the longest first: "befunge creator" names Befunge."""
    tokens = key.split(" ")[:_MAX_TOKENS]
    for length in range(min(len(tokens), LONGEST_RUN), 0, -1):
        for start in range(len(tokens) - length + 1):
            phrase = " ".join(tokens[start : start + length])
            for candidate in dict.fromkeys((phrase, *bare_forms(phrase))):
                if candidate and candidate not in STOP_WORDS:
                    yield from store.names_by_key(connection, candidate)


def _similar(connection: apsw.Connection, key: str, cutoff: float) -> _Matches:
    trigrams = search.name_trigrams(connection, fts.trigrams(key))
    if not trigrams:
        return
    names: dict[str, list[store.Name]] = {}
    for name in search.names_by_trigrams(connection, fts.any_of(trigrams), _FUZZY_CANDIDATES):
        names.setdefault(name.key, []).append(name)
    near = get_close_matches(key, names, n=_FUZZY_CANDIDATES, cutoff=cutoff)
    yield from _scored(chain.from_iterable(names[each] for each in near), _SIMILAR)
