"""Made-up names of things and people. A name belongs to training or to evaluation by its checksum."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable

from words import ADJECTIVES, FIRST_NAMES, LISTS, NOUNS

ONSETS, VOWELS, TAILS = LISTS["onsets"], LISTS["vowels"], LISTS["tails"]
WHOLE = [*NOUNS, *LISTS["tech_nouns"], *LISTS["verbs"], *ADJECTIVES]
VIETNAMESE = LISTS["vietnamese"]
CODAS = ["", "", "", "", *LISTS["codas"]]
ACCENTS = {
    "a": "áàäâãå",
    "e": "éèëê",
    "i": "íîï",
    "o": "óöôø",
    "u": "úüû",
    "c": "ç",
    "n": "ñ",
    "s": "š",
    "z": "ž",
}
SIGNS = [
    "!",
    "?",
    "++",
    "--",
    "#",
    "*",
    "+",
    "/",
    "=",
    "@",
    "~",
    "^",
    "&",
    "%",
    "|",
    "><",
    "<>",
    "[]",
    "()",
    "{}",
    "::",
]
SHORT_SIGNS = "><^v+-.,:;!?*/%#@&|~=_$"


def is_held_out(name: str) -> bool:
    """Whether a name is reserved for evaluation (one in eight, by checksum of the lower-cased name)."""
    return zlib.crc32(name.lower().encode()) % 8 == 0


def syllable(rng: random.Random) -> str:
    """One pronounceable syllable."""
    if rng.random() < 0.5:
        return (
            rng.choice("bcdfghjklmnprstvwz") + rng.choice("aeiou") + rng.choice(("", "", "l", "n", "r", "s"))
        )
    return rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS)


def stem(rng: random.Random) -> str:
    """A lower-case made-up word of one to three syllables, now and then a longer one with parts that repeat."""
    if rng.random() < 0.07:
        return long_stem(rng)
    word = "".join(syllable(rng) for _ in range(rng.choice((1, 1, 1, 2, 2, 2, 3))))
    if rng.random() < 0.45:
        word += rng.choice(TAILS)
    if rng.random() < 0.06:
        letters = [i for i, c in enumerate(word) if c in ACCENTS]
        if letters:
            at = rng.choice(letters)
            word = word[:at] + rng.choice(ACCENTS[word[at]]) + word[at + 1 :]
    return word[:14] if len(word) > 2 else word + rng.choice(TAILS)


def long_stem(rng: random.Random) -> str:
    """A long lower-case word; parts of it may repeat, so that a copy must keep its place inside the word."""
    parts = [
        syllable(rng) if rng.random() < 0.6 else rng.choice(WHOLE)[: rng.randint(3, 9)]
        for _ in range(rng.randint(2, 4))
    ]
    if rng.random() < 0.35:
        at = rng.randrange(len(parts))
        parts.insert(at, parts[at][: rng.randint(2, 5)])
    return "".join([*parts, rng.choice(("", "", *TAILS))])[:24]


def _signed(rng: random.Random) -> str:
    """A name with signs, digits or capitals inside."""
    a, b = stem(rng), stem(rng)
    digits = "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 3)))
    hexed = "".join(rng.choice("0123456789ABCDEF") for _ in range(rng.randint(3, 7)))
    return rng.choice(
        (
            f"{a.capitalize()}.{b[:3]}",
            f"{a}.{b[:4]}",
            f"{a.capitalize()}-{b.capitalize()}",
            f"{a.capitalize()}'s {rng.choice(NOUNS).capitalize()}",
            f"{a}_{b}"[:18],
            f"{a[:4].upper()}/{b[:4].upper()}",
            f"{a.capitalize()} {digits}",
            digits + a.upper()[:4] + digits[:1],
            hexed,
            f"{a[:2]}{b.upper()[:3]}{a[-2:]}",
            f"{a.capitalize()} ({rng.choice(('language', 'esolang', 'machine', rng.choice(NOUNS)))})",
            f"{a.capitalize()}{b.capitalize()}{rng.choice(WHOLE).capitalize()}"[:24],
            f"{rng.choice(SIGNS)}{a}",
            f"{a.capitalize()}, {b.capitalize()}"[:20],
            f"{a.capitalize()} of {b.capitalize()}",
            f"{rng.choice(NOUNS)} {rng.choice(NOUNS)}s",
            f"{a}lang",
            f"{a[:6]}fuck",
            f"{a.capitalize()} & {b.capitalize()}",
            f"{a.capitalize()}: {rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}",
        )
    )


def _thing(rng: random.Random) -> str:
    if rng.random() < 0.14:
        return _signed(rng)
    shape = rng.random()
    word = stem(rng)
    if shape < 0.46:
        return word.capitalize()
    if shape < 0.52:
        return word.upper()[: rng.randint(2, 6)]
    if shape < 0.57:
        return word
    if shape < 0.62:
        return word.capitalize() + stem(rng)[:5].capitalize()
    if shape < 0.68:
        return f"{word.capitalize()} {stem(rng).capitalize()}"
    if shape < 0.73:
        return f"{rng.choice(ADJECTIVES).capitalize()} {rng.choice(NOUNS).capitalize()}"
    if shape < 0.77:
        return f"{word.capitalize()} {rng.choice(NOUNS)}"
    if shape < 0.83:
        return (
            word.capitalize()
            + rng.choice(("", "", "-"))
            + str(rng.choice((rng.randint(0, 9), rng.randint(10, 999))))
        )
    if shape < 0.88:
        return word.capitalize()[: rng.randint(2, 8)] + rng.choice(SIGNS)
    if shape < 0.90:
        return "".join(rng.choice(SHORT_SIGNS) for _ in range(rng.randint(2, 5)))
    if shape < 0.93:
        return word.upper()[: rng.randint(1, 4)] + str(rng.randint(1, 99)) + rng.choice(("", "+", "-", "*"))
    if shape < 0.96:
        return " ".join(rng.sample(VIETNAMESE, rng.choice((1, 2, 2, 3))))
    if shape < 0.98:
        return f"{rng.choice(NOUNS).capitalize()}{rng.choice(('', ' ', '-'))}{word}"
    return "The " + rng.choice(ADJECTIVES).capitalize() + " " + word.capitalize()


def _person(rng: random.Random) -> str:
    shape = rng.random()
    last = stem(rng).capitalize()
    if shape < 0.55:
        return f"{rng.choice(FIRST_NAMES)} {last}"
    if shape < 0.70:
        return f"{stem(rng).capitalize()} {last}"
    if shape < 0.80:
        return " ".join(rng.sample(VIETNAMESE, rng.choice((2, 3))))
    if shape < 0.88:
        return f"{rng.choice(FIRST_NAMES)} {rng.choice('ABCDEFGHJKLMPRSTW')}. {last}"
    if shape < 0.94:
        return last
    return "User:" + last + rng.choice(("", str(rng.randint(1, 99))))


def _until_split(make: Callable[[random.Random], str], rng: random.Random, held_out: bool) -> str:
    while True:
        name = make(rng)
        if len(name) >= 2 and is_held_out(name) == held_out:
            return name


def thing_name(rng: random.Random, held_out: bool = False) -> str:
    """A made-up name of a language, town, animal or machine, of the asked half."""
    return _until_split(_thing, rng, held_out)


def _hard(rng: random.Random) -> str:
    words = [long_stem(rng) if rng.random() < 0.6 else stem(rng) for _ in range(rng.choice((1, 1, 1, 2)))]
    shape = rng.random()
    if shape < 0.35:
        return _signed(rng)
    if shape < 0.6:
        words = [w.capitalize() for w in words]
    elif shape < 0.7:
        words.append(rng.choice(NOUNS))
    elif shape < 0.8:
        words[-1] += rng.choice(SIGNS)
    elif shape < 0.84:
        return "".join(rng.choice(SHORT_SIGNS) for _ in range(rng.randint(2, 5)))
    elif shape < 0.92:  # common words: the capitals alone make them a name
        return f"{rng.choice(ADJECTIVES).capitalize()} {rng.choice(NOUNS).capitalize()}"
    return " ".join(words)


def hard_name(rng: random.Random, held_out: bool = False) -> str:
    """A name that is hard to copy: long, with parts that repeat, with signs, of several words."""
    return _until_split(_hard, rng, held_out)


def person_name(rng: random.Random, held_out: bool = False) -> str:
    """A made-up name of a person, of the asked half."""
    return _until_split(_person, rng, held_out)


def _nick(rng: random.Random) -> str:
    word = stem(rng)[:10]
    shape = rng.random()
    if shape < 0.5:
        return word.capitalize()
    if shape < 0.72:
        return word
    return rng.choice(
        (
            f"{word}{rng.randint(0, 99)}",
            f"{word}_",
            f"{word[:6]}_{stem(rng)[:5]}",
            f"{word}-{rng.choice(NOUNS)}",
            word.upper()[:6],
            f"{rng.choice(FIRST_NAMES)}{rng.randint(1, 9)}",
            f"{rng.choice(FIRST_NAMES).lower()}",
            f"{word}|{rng.choice(('away', 'work', 'afk'))}",
            f"{rng.choice(ADJECTIVES).capitalize()}{rng.choice(NOUNS).capitalize()}",
            rng.choice(VIETNAMESE),
        )
    )


def nickname(rng: random.Random, held_out: bool = False) -> str:
    """A chat nickname: a plain first name or a made-up one."""
    if rng.random() < 0.35:
        return rng.choice(FIRST_NAMES)
    return _until_split(_nick, rng, held_out)


def typo(text: str, rng: random.Random) -> str:
    """One slip of the fingers inside a word of the text: a swap, a loss or a doubled letter."""
    spots = [i for i in range(1, len(text) - 1) if text[i].isalpha() and text[i + 1].isalpha()]
    if not spots:
        return text
    i = rng.choice(spots)
    kind = rng.random()
    if kind < 0.4:
        return text[:i] + text[i + 1] + text[i] + text[i + 2 :]
    if kind < 0.7:
        return text[:i] + text[i + 1 :]
    return text[:i] + text[i] + text[i:]
