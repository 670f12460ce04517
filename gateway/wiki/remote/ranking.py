"""Preparing terms for a wiki's search engine and ranking its hits."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.store import fts
from gateway.wiki.remote.values import PageInfo
from gateway.wiki.source import PageRef

# What a hit loses per rank: 50 hits lose less than the distance between two kinds of matches.
STEP = 0.0005
_MAX_SEARCH_BYTES = 280  # CirrusSearch refuses more than 300


def clean(term: str) -> str:
    """The term on one line, without characters that neither titles nor searches can have."""
    printable = "".join(character if character.isprintable() else " " for character in term)
    return " ".join(printable.replace("|", " ").split())


def search_words(term: str) -> list[str]:
    """The term's words, up to the limit of a search. Only words, so nothing acts as a search operator."""
    words: list[str] = []
    left = _MAX_SEARCH_BYTES
    for word in fts.words(clean(term)):
        left -= len(word.encode("utf-8", "replace")) + len(" intitle:")
        if left < 0:
            break
        words.append(word)
    return words


def by_rank(infos: Iterable[PageInfo], top: float) -> list[tuple[PageInfo, float]]:
    """Scores from ``top`` downwards."""
    return [(info, top - index * STEP) for index, info in enumerate(infos)]


def named_first(infos: list[PageInfo], words: list[str]) -> list[PageInfo]:
    """Sort hits by how many of the words their titles have: MediaWiki's built-in search does not rank."""
    return sorted(infos, key=lambda info: len(set(fts.words(info.title)).intersection(words)), reverse=True)


def best(scored: Iterable[tuple[PageInfo, float]], limit: int) -> list[PageRef]:
    """Best first, each page once."""
    found: dict[str, float] = {}
    for info, score in scored:
        found[info.title] = max(score, found.get(info.title, 0.0))
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return [PageRef(title, score) for title, score in ranked[:limit]]
