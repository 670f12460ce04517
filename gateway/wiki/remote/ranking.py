"""Terms as a wiki's search engine takes them, and its hits in an order of our own. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.store import fts
from gateway.wiki.remote.values import PageInfo
from gateway.wiki.source import PageRef

# What a hit loses by its place: never so much that it falls to the next kind's score.
STEP = 0.0005
_LONGEST_SEARCH = 280  # bytes; CirrusSearch refuses more than 300


def clean(term: str) -> str:
    """The term on one line, without what no title and no search can have."""
    kept = "".join(character if character.isprintable() else " " for character in term)
    return " ".join(kept.replace("|", " ").split())


def search_words(term: str) -> list[str]:
    """The term's words, as many as a search takes. Without signs, none is an operator of the search engine."""
    words: list[str] = []
    left = _LONGEST_SEARCH
    for word in fts.words(clean(term)):
        left -= len(word.encode("utf-8", "replace")) + len(" intitle:")
        if left < 0:
            break
        words.append(word)
    return words


def falling(infos: Iterable[PageInfo], top: float) -> list[tuple[PageInfo, float]]:
    return [(info, top - index * STEP) for index, info in enumerate(infos)]


def named_first(infos: list[PageInfo], words: list[str]) -> list[PageInfo]:
    """Hits whose titles have more of the words first: MediaWiki's own search engines do not rank at all."""

    def named(info: PageInfo) -> int:
        title = set(fts.words(info.title))
        return sum(word in title for word in words)

    return sorted(infos, key=named, reverse=True)


def best(scored: Iterable[tuple[PageInfo, float]], limit: int) -> list[PageRef]:
    """Best first, no page twice."""
    found: dict[str, float] = {}
    for info, score in scored:
        found[info.title] = max(score, found.get(info.title, 0.0))
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return [PageRef(title, score) for title, score in ranked[:limit]]
