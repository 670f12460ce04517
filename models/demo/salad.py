"""Sentences without sense but with grammar: they teach copying and matching of arbitrary words.

Each statement keeps the words that a question about it repeats, so that the answer can be found by its words.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from names import stem
from words import (
    ADJECTIVES,
    ADVERBS,
    MONTHS,
    NOUNS,
    NUMBER_WORDS,
    PREPOSITIONS,
    TECH_NOUNS,
    VERBS,
    article,
    past,
    plural,
    third,
)


def noun(rng: random.Random) -> str:
    """A common noun, half of them from computing; a few are made up."""
    if rng.random() < 0.06:
        return stem(rng)
    return rng.choice(TECH_NOUNS if rng.random() < 0.45 else NOUNS)


def number(rng: random.Random) -> str:
    """A number in digits of varied length, sometimes in words."""
    shape = rng.random()
    if shape < 0.12:
        return rng.choice(NUMBER_WORDS)
    if shape < 0.45:
        return str(rng.randint(2, 99))
    if shape < 0.8:
        return str(rng.randint(100, 9999))
    if shape < 0.9:
        return f"{rng.randint(1, 99)},{rng.randint(0, 999):03d}"
    return str(rng.randint(10_000, 999_999))


def phrase(rng: random.Random) -> str:
    """A noun phrase of two to six words."""
    n, adjective = noun(rng), rng.choice(ADJECTIVES)
    shape = rng.random()
    if shape < 0.2:
        return article(f"{adjective} {n}")
    if shape < 0.35:
        return f"{adjective} {plural(n)}"
    if shape < 0.5:
        return f"the {n} {rng.choice(PREPOSITIONS)} {article(noun(rng))}"
    if shape < 0.65:
        return f"{article(n)} and {article(noun(rng))}"
    if shape < 0.8:
        return f"the {adjective} {n} of {article(noun(rng))}"
    if shape < 0.9:
        return f"{number(rng)} {adjective} {plural(n)}"
    return f"{plural(n)}, {plural(noun(rng))} and {plural(noun(rng))}"


@dataclass(frozen=True)
class Salad:
    """A statement with `{S}` for its subject where it has one, questions about it and the words that key it."""

    statement: str
    questions: tuple[str, ...]
    key: str


def _parts(rng: random.Random) -> dict[str, str]:
    verb = rng.choice(VERBS)
    return {
        "a": rng.choice(ADJECTIVES),
        "n": noun(rng),
        "m": noun(rng),
        "o": noun(rng),
        "v": verb,
        "vs": third(verb),
        "vd": past(verb),
        "d": rng.choice(ADVERBS),
        "p": rng.choice(PREPOSITIONS),
        "b": rng.choice(ADJECTIVES),
        "k": number(rng),
        "w": phrase(rng),
        "u": phrase(rng),
        "mo": rng.choice(MONTHS),
    }


# (statement, questions, key); each question names at least one content word of its statement.
_SHELLS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "The {a} {n} {vs} {w}.",
        ("what does the {a} {n} {v}", "what does the {n} {v}", "what about the {a} {n}", "{a} {n}"),
        "{w}",
    ),
    (
        "The {n} {vs} the {m} {p} the {o}.",
        ("what does the {n} {v}", "where does the {n} {v} the {m}", "what {vs} the {m}", "{n} {m}"),
        "{o}",
    ),
    (
        "The {a} {n} {d} {vs} {w}.",
        ("how does the {n} {v}", "what does the {a} {n} {v}", "what does the {a} {n} do"),
        "{w}",
    ),
    ("{k} {n}s {v} {w}.", ("how many {n}s {v} the {m}", "what do the {n}s {v}"), "{k}"),
    (
        "Every {n} is {vd} by {w}.",
        ("what is every {n} {vd} by", "by what is the {n} {vd}", "who {vs} every {n}"),
        "{w}",
    ),
    (
        "If the {n} is {a}, the {m} {vs} {w}.",
        (
            "what happens if the {n} is {a}",
            "what if the {n} is {a}",
            "when the {n} is {a}, what does the {m} {v}",
        ),
        "{w}",
    ),
    (
        "When the {n} {vs}, the {a} {m} is {vd}.",
        ("what happens when the {n} {vs}", "when is the {a} {m} {vd}", "what is {vd} when the {n} {vs}"),
        "{m}",
    ),
    (
        "A {n} cannot {v} {w}.",
        ("what can a {n} not {v}", "can a {n} {v} {w}", "what cannot a {n} {v}"),
        "{w}",
    ),
    (
        "In {mo}, the {n} {vd} {w}.",
        ("what did the {n} {v} in {mo}", "when was the {n} {vd}", "what happened in {mo}"),
        "{w}",
    ),
    (
        "Because of the {a} {n}, {w} {vs} the {m}.",
        ("why is the {m} {vd}", "what {vs} the {m}", "what is caused by the {a} {n}"),
        "{w}",
    ),
    ("{S} {d} {vs} {w}.", ("what does {N} {v}", "what does {N} {d} {v}", "{N} {v}"), "{w}"),
    (
        "{S} {vs} the {n} {p} {w}.",
        ("where does {N} {v} the {n}", "what does {N} {v}", "what does {N} do with the {n}", "{N} {n}"),
        "{w}",
    ),
    (
        "{S} has {a} {n}s and {b} {m}s.",
        ("what {n}s does {N} have", "what {m}s does {N} have", "{N} {n}s", "does {N} have {n}s"),
        "{b}",
    ),
    (
        "The {n} of {N} is {a} and {vs} {w}.",
        ("what does the {n} of {N} {v}", "how is the {n} of {N}", "what is the {n} of {N}", "{N} {n}"),
        "{w}",
    ),
    (
        "The {n} of {N} {d} {vs} {k} {m}s.",
        ("how many {m}s does the {n} of {N} {v}", "what does the {n} of {N} {v}", "{N} {n} {m}s"),
        "{k}",
    ),
    (
        "In {N}, the {n} must be {vd} {p} {w}.",
        ("where must the {n} be {vd} in {N}", "what must be {vd} in {N}", "when must the {n} be {vd} in {N}"),
        "{w}",
    ),
    ("{S} can {v} {w} {d}.", ("what can {N} {v}", "how can {N} {v} {w}", "can {N} {v} {w}"), "{w}"),
    (
        "{S} was {vd} {p} {w} in {mo}.",
        ("when was {N} {vd}", "what happened to {N} in {mo}", "where was {N} {vd}"),
        "{mo}",
    ),
    (
        "Unlike {w}, {N} {vs} {u}.",
        ("what does {N} {v}", "what does {N} {v} unlike {w}", "what is {N} unlike"),
        "{u}",
    ),
    (
        "The {a} {n} in {N} {vs} {w}, so the {m} is {vd}.",
        ("why is the {m} {vd} in {N}", "what does the {a} {n} in {N} {v}", "{N} {a} {n}"),
        "{w}",
    ),
    (
        "Although the {n} is {a}, {w} {d} {vs} it.",
        ("what {vs} the {a} {n}", "is the {n} {a}", "what {vs} the {n}"),
        "{w}",
    ),
    (
        "Nobody {vs} the {a} {n}, since {w} {vd} the {m}.",
        ("who {vs} the {a} {n}", "why does nobody {v} the {n}", "what {vd} the {m}"),
        "{w}",
    ),
)


def salad(rng: random.Random, *, general: bool = False) -> Salad:
    """A random statement; a general one does not mention the subject of the page."""
    while True:
        shell = rng.choice(_SHELLS)
        named = "{N}" in shell[0] or "{S}" in shell[0]
        if named == (not general):
            break
    parts = _parts(rng) | {"S": "{S}", "N": "{N}"}
    statement = shell[0].format(**parts)
    if statement.startswith("A "):
        statement = sentence_article(statement)
    return Salad(
        statement[:1].upper() + statement[1:],
        tuple(q.format(**parts) for q in shell[1]),
        shell[2].format(**parts),
    )


def sentence_article(statement: str) -> str:
    """The statement with its leading `A` corrected to `An` where a vowel follows."""
    return "An" + statement[1:] if statement[2].lower() in "aeio" else statement


def vague(rng: random.Random) -> str:
    """A subject for `{subject}` of the search prompt."""
    return rng.choice((plural(noun(rng)), f"{rng.choice(ADJECTIVES)} {plural(noun(rng))}"))
