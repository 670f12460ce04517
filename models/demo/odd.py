"""What real pages hold beside sentences: odd words, foreign script, units, dates, code, lists and table rows."""

from __future__ import annotations

import random

from names import SHORT_SIGNS, long_stem, stem
from words import ADJECTIVES, MONTHS, NOUNS, TECH_NOUNS, VERBS

UNITS = (
    "km",
    "kg",
    "MB",
    "bytes",
    "ms",
    "%",
    "px",
    "°C",
    "Hz",
    "bits",
    "mm",
    "GB",
    "miles",
    "seconds",
    "EUR",
    "USD",
)
# First and last code point of letters that real pages quote, with the name of a language that writes them.
_SCRIPTS = (
    ("Greek", 0x3B1, 0x3C9),
    ("Russian", 0x430, 0x44F),
    ("Korean", 0xAC00, 0xD7A3),
    ("Japanese", 0x30A1, 0x30F6),
    ("Chinese", 0x4E00, 0x6FFF),
    ("Hebrew", 0x5D0, 0x5EA),
    ("Georgian", 0x10D0, 0x10F0),
    ("Thai", 0xE01, 0xE2E),
    ("Latin", 0xE0, 0x17F),
)
_VIETNAMESE = "aăâáàảãạắằẳẵặấầẩẫậeêéèẻẽẹếềểễệiíìỉĩịoôơóòỏõọốồổỗộớờởỡợuưúùủũụứừửữựyýđ"


def long_word(rng: random.Random) -> str:
    """A long made-up word, as it is or with a capital."""
    word = long_stem(rng)
    return word.capitalize() if rng.random() < 0.4 else word


def foreign(rng: random.Random) -> tuple[str, str]:
    """The name of a language and one or two words in its letters, without sense."""
    if rng.random() < 0.25:
        words = (
            "".join(
                rng.choice("bcdđghklmnpqrstvx")
                + rng.choice(_VIETNAMESE)
                + rng.choice(("", "n", "ng", "c", "t", "i"))
                for _ in "a"
            )
            for _ in range(rng.randint(1, 4))
        )
        return "Vietnamese", " ".join(words)
    name, first, last = rng.choice(_SCRIPTS)
    size = rng.randint(1, 4) if last - first > 200 else rng.randint(2, 9)
    return name, "".join(chr(rng.randint(first, last)) for _ in range(size))


def date(rng: random.Random) -> str:
    """A date in one of the usual forms."""
    year, month, day = rng.randint(1900, 2025), rng.randint(1, 12), rng.randint(1, 28)
    name = MONTHS[month - 1]
    return rng.choice(
        (
            f"{day} {name} {year}",
            f"{name} {day}, {year}",
            f"{year}-{month:02d}-{day:02d}",
            f"{name} {year}",
            f"{day}.{month}.{year}",
            f"{name} {day}",
        )
    )


def measure(rng: random.Random) -> str:
    """A number with a unit."""
    value = rng.choice(
        (
            str(rng.randint(2, 999)),
            f"{rng.randint(0, 99)}.{rng.randint(1, 9)}",
            f"{rng.randint(1, 99)},{rng.randint(0, 999):03d}",
        )
    )
    unit = rng.choice(UNITS)
    return value + ("" if unit == "%" else " ") + unit


def code(rng: random.Random) -> str:
    """A short piece of code in no language; signs repeat."""
    shape = rng.random()
    if shape < 0.4:
        signs = rng.sample(SHORT_SIGNS + "()[]{}", rng.randint(2, 6))
        return "".join(rng.choice(signs) for _ in range(rng.randint(3, 24)))
    word, other = rng.choice(TECH_NOUNS), stem(rng)
    return rng.choice(
        (
            f'print("{other.capitalize()}, {word}!")',
            f"{word} = {word} + {rng.randint(1, 9)}",
            f"{rng.choice(VERBS).upper()} {word.upper()} {rng.randint(0, 99)}",
            f"for {other[0]} in {word}s: {other}({other[0]})",
            f"{other}({word}, {rng.randint(0, 9)});",
            " ".join(rng.choice((word, other, stem(rng))) for _ in range(rng.randint(3, 8))),
            ", ".join(str(rng.choice((0, 0, 1, rng.randint(0, 255)))) for _ in range(rng.randint(3, 9))),
            " ".join(rng.choice(("0", "1", "0", rng.choice("abcdef"))) for _ in range(rng.randint(4, 12))),
        )
    )


def aside(rng: random.Random) -> str:
    """Something odd that fits into a sentence: in parentheses, in quotes, code, a unit or a date."""
    language, word = foreign(rng)
    return rng.choice(
        (
            f"({language}: {word})",
            f"({rng.choice(('from', 'formerly', 'also', 'short for', 'pronounced', 'see'))} {long_word(rng)})",
            f'("{rng.choice(ADJECTIVES)} {rng.choice(NOUNS)}" in {language})',
            f"({measure(rng)})",
            f"({date(rng)})",
            f"`{code(rng)}`",
            f'"{long_word(rng)}"',
            f"({rng.randint(1, 99)}-{rng.randint(100, 199)})",
            f"[{stem(rng)}]",
            f"({stem(rng).upper()[:4]})",
        )
    )


def oddity(rng: random.Random) -> str:
    """A line that is no sentence: a list item, a row of a table, a line of code, a see-also."""
    cells = [
        rng.choice(
            (
                rng.choice(TECH_NOUNS),
                stem(rng),
                str(rng.randint(0, 999)),
                rng.choice(SHORT_SIGNS),
                measure(rng),
                date(rng),
            )
        )
        for _ in range(rng.randint(2, 5))
    ]
    return rng.choice(
        (
            " | ".join(cells),
            "* " + " ".join(cells[:3]),
            code(rng),
            "`" + code(rng) + "`",
            f"{cells[0].capitalize()}: {', '.join(cells[1:])}",
            f"{rng.randint(1, 9)}. {rng.choice(ADJECTIVES).capitalize()} {rng.choice(NOUNS)} {foreign(rng)[1]}",
            "See also: " + ", ".join(stem(rng).capitalize() for _ in range(rng.randint(1, 3))),
        )
    )
