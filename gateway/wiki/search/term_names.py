"""Titles that a search term may contain: "who made befunge?" may mean Befunge."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.store.fts import STOP_WORDS

LONGEST_TITLE = 255  # bytes
_MAX_NAMES = 50  # titles a MediaWiki takes in one request
_LONGEST_LIST = 4096  # bytes of all names together: they become part of an address
_LONGEST_RUN = 6  # words
_LONGEST_ACRONYM = 12
_PUNCTUATION = " ?!.,:;'\"()[]{}“”‘’«»"
# MediaWiki refuses titles with these, and separates titles by the last two.
_ILLEGAL = frozenset("#<>[]{}|\x1f")


def names_in(term: str) -> list[str]:
    """The term first, then runs of its words, the longest first, as MediaWiki titles; at most 50.

    Titles differ in case except for their first letter, so each run is tried in several forms. Where there are more
    names than fit, the short ones stay: most titles are.
    """
    chosen: dict[str, int] = {}  # words of the run, by name
    left = _LONGEST_LIST
    for name, length in _candidates(term):
        size = len(name.encode("utf-8", "replace")) + 1
        if name in chosen or size > left:
            continue
        chosen[name] = length
        left -= size
        if len(chosen) == _MAX_NAMES:
            break
    return sorted(chosen, key=lambda name: -chosen[name])


def _candidates(term: str) -> Iterator[tuple[str, int]]:
    """Names and how many words they have; the whole term counts most."""
    words = term.split()
    yield from ((name, len(words) + 1) for name in _forms(term))
    for length in range(1, min(len(words), _LONGEST_RUN) + 1):
        for start in range(len(words) - length + 1):
            run = [word.strip(_PUNCTUATION).casefold() for word in words[start : start + length]]
            if run[0] in STOP_WORDS or run[-1] in STOP_WORDS:
                continue
            bare = " ".join(words[start : start + length]).strip(_PUNCTUATION)
            for form in (bare, bare.removesuffix("'s").removesuffix("’s")):
                yield from ((name, length) for name in _forms(form))


def _forms(name: str) -> list[str]:
    """The name with a capital, with capitals, and one word all in capitals."""
    if not name or _ILLEGAL.intersection(name) or len(name.encode("utf-8", "replace")) > LONGEST_TITLE:
        return []
    forms = [_capital(name), " ".join(_capital(word) for word in name.split(" "))]
    if " " not in name and len(name) <= _LONGEST_ACRONYM:
        forms.append(name.upper())
    return list(dict.fromkeys(forms))


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]
