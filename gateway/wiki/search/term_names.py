"""Titles that a search term may contain: "who made befunge?" may mean Befunge."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.store.stop_words import STOP_WORDS

LONGEST_TITLE = 255  # bytes
LONGEST_RUN = 6  # words of a name inside a term
_MAX_NAMES = 50  # titles that a MediaWiki accepts in one request
_MAX_LIST_BYTES = 4096  # all names together: they become part of a URL
_LONGEST_ACRONYM = 12
_PUNCTUATION = " ?!.,:;'\"()[]{}“”‘’«»"
# MediaWiki refuses titles with these, and separates titles by the last two.
_ILLEGAL = frozenset("#<>[]{}|\x1f")


def names_in(term: str) -> list[str]:
    """The term, then runs of its words, longest first, as MediaWiki titles; at most 50.

    Each run comes in several capitalizations: titles are case-sensitive except for their first letter. Short names
    take precedence when there are too many, because most titles are short.
    """
    chosen: dict[str, int] = {}  # length of the run in words, by name
    left = _MAX_LIST_BYTES
    for name, length in _candidates(term):
        size = len(name.encode("utf-8", "replace")) + 1
        if name in chosen or size > left:
            continue
        chosen[name] = length
        left -= size
        if len(chosen) == _MAX_NAMES:
            break
    return sorted(chosen, key=lambda name: -chosen[name])


def bare_forms(phrase: str) -> tuple[str, str]:
    """The phrase without punctuation around it, and also without a possessive ``'s``."""
    bare = phrase.strip(_PUNCTUATION)
    return bare, bare.removesuffix("'s").removesuffix("’s")


def _candidates(term: str) -> Iterator[tuple[str, int]]:
    """Names and their lengths in words; the whole term counts as the longest."""
    words = term.split()
    yield from ((name, len(words) + 1) for name in _capitalized(term))
    for length in range(1, min(len(words), LONGEST_RUN) + 1):
        for start in range(len(words) - length + 1):
            run = [word.strip(_PUNCTUATION).casefold() for word in words[start : start + length]]
            if run[0] in STOP_WORDS or run[-1] in STOP_WORDS:
                continue
            for form in bare_forms(" ".join(words[start : start + length])):
                yield from ((name, length) for name in _capitalized(form))


def _capitalized(name: str) -> list[str]:
    """The name with its first letter, the first letter of each word, and a short word entirely in capitals."""
    if not name or _ILLEGAL.intersection(name) or len(name.encode("utf-8", "replace")) > LONGEST_TITLE:
        return []
    forms = [_capital(name), " ".join(_capital(word) for word in name.split(" "))]
    if " " not in name and len(name) <= _LONGEST_ACRONYM:
        forms.append(name.upper())
    return list(dict.fromkeys(forms))


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]
