"""Titles that a search term may contain: "who made befunge?" may mean Befunge."""

from __future__ import annotations

from collections.abc import Iterable

from gateway.store.fts import STOP_WORDS

_MAX_NAMES = 50  # titles a MediaWiki takes in one request
_LONGEST = 6  # words
_PUNCTUATION = " ?!.,:;'\"()[]{}“”‘’«»"
# MediaWiki refuses titles with these, and separates titles by the last.
_ILLEGAL = frozenset("#<>[]{}|\x1f")
LONGEST_TITLE = 255  # bytes
_LONGEST_LIST = 4096  # bytes of all names together: they become part of an address


def names_in(term: str) -> list[str]:
    """The term first, then runs of its words, the longest first, as MediaWiki titles; at most 50.

    Titles differ in case except for their first letter, so each run is tried as it is and with capitals.
    """
    words = term.split()
    names = dict.fromkeys(_forms(term))
    for length in range(min(len(words), _LONGEST), 0, -1):
        for start in range(len(words) - length + 1):
            run = " ".join(words[start : start + length])
            bare = run.strip(_PUNCTUATION)
            if bare.casefold() not in STOP_WORDS:
                names |= dict.fromkeys(_forms(bare) + _forms(_without_possessive(bare)))
    return _limited(names)


def _limited(names: Iterable[str]) -> list[str]:
    chosen: list[str] = []
    left = _LONGEST_LIST
    for name in names:
        left -= len(name.encode("utf-8", "replace")) + 1
        if left < 0 or len(chosen) == _MAX_NAMES:
            break
        chosen.append(name)
    return chosen


def _forms(name: str) -> list[str]:
    if not name or _ILLEGAL.intersection(name) or len(name.encode("utf-8", "replace")) > LONGEST_TITLE:
        return []
    capitals = " ".join(word[:1].upper() + word[1:] for word in name.split(" "))
    return list(dict.fromkeys((name, capitals, name.upper() if len(name) < 12 else name)))


def _without_possessive(name: str) -> str:
    return name.removesuffix("'s").removesuffix("’s")
