"""Common words for made-up sentences, from `words.toml`, and their forms; verbs and nouns are regular."""

from __future__ import annotations

import tomllib
from pathlib import Path

LISTS: dict[str, list[str]] = {
    name: text.split()
    for name, text in tomllib.loads(Path(__file__).with_name("words.toml").read_text()).items()
}
NOUNS, TECH_NOUNS, ADJECTIVES = LISTS["nouns"], LISTS["tech_nouns"], LISTS["adjectives"]
VERBS, ADVERBS, PREPOSITIONS = LISTS["verbs"], LISTS["adverbs"], LISTS["prepositions"]
FIRST_NAMES, MONTHS, NUMBER_WORDS = LISTS["first_names"], LISTS["months"], LISTS["number_words"]


def third(verb: str) -> str:
    """Third person singular of a regular verb: carry → carries."""
    if verb.endswith(("s", "sh", "ch", "x", "z")):
        return verb + "es"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ies"
    return verb + "s"


def past(verb: str) -> str:
    """Past tense of a regular verb: carry → carried, stop-like short verbs double the consonant."""
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return verb[:-1] + "ied"
    doubles = (
        "drag",
        "drop",
        "grab",
        "rub",
        "scan",
        "skip",
        "stir",
        "trap",
        "wrap",
        "control",
        "pat",
        "prefer",
    )
    if verb in doubles:
        return verb + verb[-1] + "ed"
    return verb + "ed"


def plural(noun: str) -> str:
    """Plural of a regular noun: box → boxes, berry → berries."""
    if noun.endswith(("s", "sh", "ch", "x", "z")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    return noun + "s"


def article(word: str) -> str:
    """The indefinite article with its word: an apple, a unit."""
    return ("an " if word[0].lower() in "aeio" else "a ") + word
