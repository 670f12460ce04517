"""Finding pages by name: exact names first, then names that begin with, contain, or resemble the term."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher

import apsw

from gateway.store import fts
from gateway.store.wiki import pages as store
from gateway.store.wiki import search
from gateway.wiki.sketch import SeenTexts
from gateway.wiki.source import PageRef

# How sure each kind of match is; scores inside a kind are smaller, never below the next kind's.
_EXACT, _REDIRECT, _PREFIX, _WORDS, _CONTAINED, _SUBSTRING, _SIMILAR = 1.0, 0.95, 0.9, 0.8, 0.7, 0.6, 0.5

_LONGEST_NAME_IN_TERM = 6  # words
_MAX_TOKENS = 32
_PUNCTUATION = " ?!.,:;'\"()[]{}“”‘’«»"
_FUZZY_CANDIDATES = 60
_SIMILAR_TERM = 0.72  # difflib ratio from which a whole term counts as a misspelt name
_SIMILAR_WORD = 0.8  # a single word of it
_SHORTEST_MISSPELT = 5  # letters; shorter words resemble too much


def search_titles(connection: apsw.Connection, term: str, limit: int) -> list[PageRef]:
    """Pages by name, best first, no page or copy of one twice. Misspellings count only when nothing else is found."""
    found: dict[str, float] = {}
    texts = SeenTexts()
    seen: set[str] = set()
    for name, score in _matches(connection, term, limit, found):
        title = store.resolve(connection, name.name)
        if title is None or title in seen:
            continue
        seen.add(title)
        if texts.add(search.sketch_of(connection, title)):
            found[title] = score
            if len(found) >= limit:
                break
    return [PageRef(title, score) for title, score in found.items()]


def _matches(
    connection: apsw.Connection, term: str, limit: int, found: dict[str, float]
) -> Iterator[tuple[store.Name, float]]:
    """Names from the surest to the vaguest match; ``found`` tells whether the vague ones are needed."""
    key = fts.title_key(term)
    if not key or limit < 1:
        return
    for name in store.names_by_key(connection, key):
        yield name, _EXACT if name.name == name.target else _REDIRECT
    if len(key) > 1:
        # Several names may lead to one page.
        yield from _scored(search.names_by_prefix(connection, key, 4 * limit), _PREFIX)
    words = fts.words(term)
    if words:
        yield from _scored(search.names_by_words(connection, fts.all_of(words), 4 * limit), _WORDS)
    yield from _scored(_names_inside(connection, key), _CONTAINED)
    if len(key) > 2:
        yield from _scored(search.names_by_trigrams(connection, fts.all_of([key]), 4 * limit), _SUBSTRING)
    if found:
        return
    yield from _similar(connection, key, _SIMILAR_TERM)
    if not found:
        for word in words:
            if len(word) >= _SHORTEST_MISSPELT:
                yield from _similar(connection, word, _SIMILAR_WORD)


def _scored(names: Iterable[store.Name], top: float) -> Iterator[tuple[store.Name, float]]:
    """Scores that fall from ``top`` by a little with each name."""
    for index, name in enumerate(names):
        yield name, top - min(index, 90) * 0.0005


def _names_inside(connection: apsw.Connection, key: str) -> list[store.Name]:
    """Names that stand in the term as whole words, the longest first: "befunge creator" names Befunge."""
    tokens = key.split(" ")[:_MAX_TOKENS]
    found = []
    for length in range(min(len(tokens), _LONGEST_NAME_IN_TERM), 0, -1):
        for start in range(len(tokens) - length + 1):
            for candidate in _forms(" ".join(tokens[start : start + length])):
                found += store.names_by_key(connection, candidate)
    return found


def _forms(phrase: str) -> Iterator[str]:
    """The phrase as it stands, without the punctuation around it, and without a possessive ``'s``."""
    bare = phrase.strip(_PUNCTUATION)
    forms = (phrase, bare, bare.removesuffix("'s").removesuffix("’s"))
    yield from (form for form in dict.fromkeys(forms) if form and form not in fts.STOP_WORDS)


def _similar(connection: apsw.Connection, key: str, least: float) -> list[tuple[store.Name, float]]:
    trigrams = search.name_trigrams(connection, fts.trigrams(key))
    if not trigrams:
        return []
    candidates = search.names_by_trigrams(connection, fts.any_of(trigrams), _FUZZY_CANDIDATES)
    near = [
        (name, _SIMILAR * ratio) for name in candidates if (ratio := _likeness(key, name.key, least)) >= least
    ]
    return sorted(near, key=lambda pair: -pair[1])


def _likeness(one: str, other: str, least: float) -> float:
    """difflib's ratio; 0 when its quick upper bounds are below ``least`` already."""
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0.0
    return matcher.ratio()
