"""A crude stemmer of English words, for comparing texts.

Both sides of every comparison go through it, so it only has to map the forms of a word to the same string.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Suffix, its replacement, and the shortest word that loses it.
_SUFFIXES = (
    ("ations", "at", 8),
    ("ation", "at", 7),
    ("ators", "at", 7),
    ("ator", "at", 6),
    ("ies", "y", 5),
    ("ings", "", 7),
    ("ing", "", 6),
    ("ers", "", 6),
    ("ors", "", 7),
    ("er", "", 6),
    ("or", "", 6),
    ("ed", "", 5),
    ("es", "", 5),
    ("s", "", 4),
)
# British spellings: colour, organisation, analysed, centre, programme.
_BRITISH = tuple(
    (re.compile(pattern), american)
    for pattern, american in (
        (r"(?<=\w{3})our(?=(?:s|ed|ing|ful|less|ite|ites|able|hood)?$)", "or"),
        (r"(?<=\w{3})is(?=(?:e|es|ed|ing|er|ers|ation|ations)$)", "iz"),
        (r"(?<=al)ys(?=(?:e|es|ed|ing|er|ers)$)", "yz"),
        (r"(?<=\w{2})tre(?=s?$)", "ter"),
        (r"(?<=gr)amme(?=s?$)", "am"),
    )
)


@lru_cache(maxsize=1 << 13)  # a question compares some thousand words, most of them several times
def stem(word: str) -> str:
    """Return a lower-case form shared by most inflections of ``word``."""
    word = re.sub(r"['’]s?$", "", word.casefold())
    if not word.isalpha():
        return word
    for pattern, american in _BRITISH:
        word = pattern.sub(american, word)
    for suffix, replacement, least in _SUFFIXES:
        if len(word) >= least and word.endswith(suffix) and not word.endswith("ss"):
            word = word.removesuffix(suffix) + replacement
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word
