"""A crude stemmer of English words and one spelling of Vietnamese ones, for comparing texts.

Both sides of every comparison go through it, so it only has to map the forms of a word to the same string.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from gateway.base.patterns import any_case

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
# Nouns that would become another word without their ending.
_WHOLE = frozenset("shower flower locker corner counter former proper building butter note".split())  # noqa: SIM905
_NO_PLURALS = frozenset(("https", "news", "lens", "always", "perhaps", "dues"))
# Irregular forms, except those that are also words of their own, such as "found" or "left".
_IRREGULAR = {
    form: base
    for base, *forms in map(
        str.split,
        """
        begin began begun|break broke broken|bring brought|buy bought|catch caught|choose chose chosen
        drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|fly flew flown|forget forgot forgotten
        give gave given|go went gone|grow grew grown|hide hid hidden|hold held|keep kept|know knew known
        lead led|lend lent|lose lost|meet met|pay paid|ride rode ridden|sell sold|send sent|sleep slept
        speak spoke spoken|spend spent|steal stole stolen|swim swam swum|take took taken|teach taught
        throw threw thrown|wear wore worn|draw drew drawn|fight fought|shoot shot|run ran|come came|become became
        think thought|tell told|stand stood|feed fed|freeze froze frozen|shake shook shaken|sing sang sung|hear heard
        dig dug|use used using|die died dying|tie tied|lie lied|stick stuck|strike struck|wake woke woken|child children
        foot feet|mouse mice|tooth teeth
        """.strip()
        .replace("\n", "|")
        .split("|"),
    )
    for form in forms
}
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


def other_forms(word: str) -> list[str]:
    """The irregular forms of a stem, which a search by regular stems does not find."""
    return [each for each in (*_IRREGULAR, *_IRREGULAR.values()) if stem(each) == word]


@lru_cache(maxsize=1 << 13)  # a question compares some thousand words, most of them several times
def stem(word: str) -> str:
    """Return a lower-case form shared by most inflections of ``word``."""
    word = re.sub(r"['’]s?$", "", word.casefold())
    word = _IRREGULAR.get(word, word)
    if word.removesuffix("s") in _WHOLE:
        return word.removesuffix("s")
    if not word.isalpha() or word in _NO_PLURALS:
        return word
    for pattern, american in _BRITISH:
        word = pattern.sub(american, word)
    for suffix, replacement, least in _SUFFIXES:
        if len(word) >= least and word.endswith(suffix) and not word.endswith("ss"):
            word = word.removesuffix(suffix) + replacement
            # "Soldering" as "solder", which loses its ending too.
            if suffix in ("ings", "ing", "ed") and len(word) >= 6 and word.endswith(("er", "or")):
                word = word[:-2]
            break
    if len(word) > 3 and word[-1] == word[-2]:
        word = word[:-1]
    return word.removesuffix("e") if len(word) > 3 else word


# Both places of a tone are in use in Vietnamese: "khoá" and "khóa", "huỷ" and "hủy".
_TONED = any_case(r"(?<!q)([ou])([àáảãạèéẻẽẹỳýỷỹỵ])(?!\w)")


def old_tones(text: str) -> str:
    """The text with the tone on the first of two vowels, with the same offsets."""
    return text if text.isascii() else _TONED.sub(_moved, text)


def _moved(match: re.Match[str]) -> str:
    vowel = unicodedata.normalize("NFD", match[2])
    return unicodedata.normalize("NFC", f"{match[1]}{vowel[1]}{vowel[0]}")
