"""Questions that carry names in wordings without end: composed from parts, or cut out of real English sentences.

A handful of templates teaches which words stand beside a name in those templates. Here any word may.
"""

from __future__ import annotations

import random
import re

from filler import clause
from names import stem
from salad import noun, phrase
from words import ADJECTIVES, ADVERBS, LISTS, PREPOSITIONS, VERBS, past, plural, third

EVERYDAY = LISTS["everyday"]
_SMALL = EVERYDAY[: EVERYDAY.index("teach")]  # nothing among them that one might look for
_SIGNS = (",", ",", ":", ":", ";", ".", "...", "'s", "!", " -", "?")
_QUOTES = (("(", ")"), ('"', '"'), ("'", "'"), ("“", "”"), ("*", "*"))
_PLAIN = re.compile(r"[a-z]+[,;]?")
_ASKING = (
    "what", "when", "where", "why", "how", "who", "which", "since when", "until when", "how often", "how far",
    "how long", "how much", "with whom", "for whom", "from where", "what else", "why exactly", "how on earth",
)  # fmt: skip
_HELPERS = (
    "can", "could", "should", "must", "may", "shall", "will", "did", "does", "has", "was", "is", "had", "doesn't",
    "isn't", "can't",
)  # fmt: skip
# {N} stands for the name; the other letters as in `_word`.
_SINGLE = (
    "{q} {h} {N} {v} {w}", "{h} {N} {d} {v} {w}", "{h} {N} {v}", "{q} {vs} {N}", "{N} {vs} {w}, {q}", "{w} {p} {N}",
    "{N} {p} {w}", "the {n} of {N} {p} {w}", "{v} {N}", "{v} {N} {p} {w}", "{q} {h} {N} {vd} {p} {w}",
    "{q} {h} one {v} {N}", "{q} {h} i {v} {w} {p} {N}", "{q} {h} {w} {v} {N}", "if {N} {vs} {w}, {q} {h} it {v}",
    "{N} {d} {vd}", "{N}, {q}", "{N} {a}", "{h} {N} be {a}", "{q} {h} {N} be", "{h} {N} {a} {p} {w}",
    "{q} {n} {h} {N} {v}", "i {v} {N} {p} {w}, {q}", "{N} {vs} and {vs}", "{q} about {N} and its {n}", "{vs} {N} {w}",
    "{q} {h} {N} not {v}", "{N}: {q} {h} it {v}", "my {n} {vs} {N}", "{q} {h} all the {ns} {p} {N}", "{d} {v} {N}",
    "{q} {p} {N}", "{N} again", "{n} of {N}", "{a} {n} of {N}", "first {n} of {n} of {N}", "how many {ns} {v} at {N}",
    "{n} for {N}", "who is in {n} of {N}", "{q} is in the {n} of {N}", "{ns} {p} {N}", "at what {n} does {N} {v}",
    "{v} the {n} of {N}", "{N} {n} {n}", "the {n} that made {N} {v}", "number of {ns} in {N}", "{N}'s {a} {n}",
    "is {N} {vd} {p} {w}", "is {N} considered {a}", "how {a} is the {n} of {N}", "what does {N} {v} as {w}",
    "a {n} on {N}", "a {n} on {N} would help", "do {N} {v}", "are there {N}", "who {vs} {N}", "{v} me {N}",
    "tìm {N}", "nói về {N}", "kể cho tôi về {N}", "{N} có gì hay", "{N} dùng để làm gì", "ở đâu có {N}",
)  # fmt: skip
_DOUBLE = (
    "{q} {h} {N} {v} {M}", "{h} {N} {v} {M}", "{N} {vs} {M}", "{v} {N} {p} {M}", "{v} {M} and {N}", "{N} {p} {M}, {q}",
    "{q} {h} {N} and {M} {v}", "{h} {N} or {M} {v} {w}", "{q} {vs} both {N} and {M}", "{p} {N}, {q} {h} {M} {v}",
    "{N} {vd} {p} {M}", "{q} {h} {M} {v} that {N} {vs}", "neither {N} nor {M}", "{N} {vs}, {M} {vs}",
    "{N}, {M}: {ns}", "{N}, {M} and their {ns}", "{N} / {M}: {n}", "{v} {N} {p} {M}, {q}", "{h} {N} {v} against {M}",
    "out of {N} and {M}, which {vs}", "{N}, {M}: {q}", "{h} {N} {v} {d} {p} {M}",
    "{a} {p} {N} and {M}", "the {n} of {N} and the {n} of {M}", "{N} {v} {w} {p} {M}",
)  # fmt: skip


def _word(letter: str, rng: random.Random) -> str:
    if letter == "q":
        return rng.choice(_ASKING)
    if letter == "h":
        return rng.choice(_HELPERS)
    if letter == "w":
        return phrase(rng)
    if letter == "n":
        return noun(rng)
    if letter == "ns":
        return plural(noun(rng))
    if letter in ("a", "d", "p"):
        return rng.choice({"a": ADJECTIVES, "d": ADVERBS, "p": PREPOSITIONS}[letter])
    verb = rng.choice(VERBS)
    return {"v": verb, "vs": third(verb), "vd": past(verb)}[letter]


def composed(names: tuple[str, ...], rng: random.Random) -> str:
    """A question about one or two names, its other words drawn part by part."""
    pattern = rng.choice(_SINGLE if len(names) == 1 else _DOUBLE)
    fixed = dict(zip("NM", names, strict=False))
    return re.sub(r"\{(\w+)\}", lambda m: fixed.get(m[1]) or _word(m[1], rng), pattern)


def strewn(names: tuple[str, ...], rng: random.Random) -> str:
    """The names among common words in no order, signs behind some of them: what is not common is a name."""
    pools = (EVERYDAY, EVERYDAY, EVERYDAY, VERBS, ADVERBS, ADJECTIVES, PREPOSITIONS)
    words = [
        noun(rng) if rng.random() < 0.15 else rng.choice(rng.choice(pools)) for _ in range(rng.randint(1, 7))
    ]
    for name in names:
        draw = rng.random()
        if draw < 0.2 and name[-1].isalnum():
            name += rng.choice(_SIGNS)
        elif draw < 0.26:
            left, right = rng.choice(_QUOTES)
            name = left + name + right
        words.insert(rng.randint(0, len(words)), name)
    return " ".join(words)


def plain_topic(rng: random.Random) -> tuple[str, str]:
    """A topic or a name of common words, and a question that has nothing but small words beside it."""
    a, n = rng.choice(ADJECTIVES), noun(rng)
    topic = rng.choice(
        (plural(n), plural(n), f"{a} {plural(n)}", f"{a} {n}", f"{stem(rng)} {n}", f"{n} {stem(rng)}")
    )
    words = [rng.choice(_SMALL) for _ in range(rng.randint(1, 7))]
    words.insert(rng.randint(0, len(words)), topic)
    return topic, " ".join(words)


def surrounded(question: str, rng: random.Random) -> str:
    """The question after or before a few words that ask for nothing."""
    words = [rng.choice(_SMALL) for _ in range(rng.randint(1, 6))]
    if rng.random() < 0.3:
        words.insert(rng.randint(0, len(words)), rng.choice((rng.choice(ADJECTIVES), rng.choice(ADVERBS))))
    text = " ".join(words)
    if rng.random() < 0.7:
        return text + rng.choice((": ", ", ", ". ", " - ", "! ", " ")) + question
    return question + rng.choice((", ", ". ", " - ", " ")) + text


def embedded(names: tuple[str, ...], rng: random.Random, held_out: bool) -> str:
    """Words in a row of a real sentence, some of them replaced by the names; "" where the sentence has names itself."""
    words = clause(rng, held_out).split()
    size = rng.randint(2 + len(names), 9)
    start = rng.randint(0, max(0, len(words) - size))
    words = [w.strip("\"'()`") for w in words[start : start + size]]
    places = [i for i, w in enumerate(words) if len(w) > 3]
    if not all(_PLAIN.fullmatch(w) for w in words) or len(places) < len(names):
        return ""
    for name, place in zip(names, rng.sample(places, len(names)), strict=True):
        words[place] = name
    text = " ".join(words).rstrip(",;")
    return f"{rng.choice(_ASKING)} {text}" if rng.random() < 0.4 else text
