"""Real English: sentences of the documentation that comes with Python, and questions about them by their words.

The made-up templates alone teach a model to copy templates. These sentences (docstrings of the standard library
and the language reference in `pydoc_data`, PSF licence) are read from the Python that runs the training; they are
filler of pages and clauses of made-up sentences. One in eight is kept for evaluation.
"""

from __future__ import annotations

import ast
import random
import re
import sysconfig
import zlib
from collections import Counter
from functools import cache
from pathlib import Path
from pydoc_data.topics import topics

from words import LISTS, third

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_WORD = re.compile(r"[^\W\d_]{4,}")
_MARKUP = re.compile(r"\*\*|\*(?=\w)|(?<=\w)\*|``|>>>|::|--|\\|\[\d+\]")
_SKIP = {"test", "tests", "site-packages", "idlelib", "lib2to3", "turtledemo"}
_VERBS = frozenset(LISTS["docstring_verbs"])
_LOWER = frozenset(LISTS["openings"])
_COPULA = re.compile(
    r"^(.{6,70}?) (is|are|was|were|can|cannot|must|may|should|will|has|have|contains|returns|uses) (.{10,})\.$"
)
_FRESH_PATTERNS = (
    "the article has something on {k}, what",
    "which part deals with {k}",
    "anything known of {k}",
)
_PATTERNS = (
    "{k}",
    "what about {k}",
    "what is said about {k}",
    "what does it say about {k}",
    "tell me about {k}",
    "{k} explained",
    "how does {k} work",
    "what happens with {k}",
    "why {k}",
    "info on {k}",
    "anything about {k}",
    "find the part on {k}",
    "how is {k} handled",
)


@cache
def _corpus() -> tuple[dict[bool, list[str]], Counter[str]]:
    """Sentences by "kept for evaluation", and in how many of them a word stands."""
    texts = list(topics.values())
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if _SKIP.isdisjoint(path.parts):
            try:
                tree = ast.parse(path.read_bytes())
            except (SyntaxError, ValueError):
                continue
            kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
            texts += [ast.get_docstring(n) or "" for n in ast.walk(tree) if isinstance(n, kinds)]
    found: dict[str, None] = {}
    for text in texts:
        for paragraph in re.split(r"\n\s*\n", text):
            for sentence in _SENTENCE.split(_MARKUP.sub("", " ".join(paragraph.split()))):
                words = sentence.split()
                if (
                    5 <= len(words) <= 38
                    and sentence[0].isupper()
                    and sentence[-1] == "."
                    and len(sentence) < 240
                ):
                    found[sentence] = None
    halves: dict[bool, list[str]] = {False: [], True: []}
    seen: Counter[str] = Counter()
    for sentence in found:
        halves[zlib.crc32(sentence.encode()) % 8 == 0].append(sentence)
        seen.update({w.lower() for w in _WORD.findall(sentence)})
    return halves, seen


def lowered(text: str) -> str:
    """The text begun in lower case where its first word is no name."""
    first = text.split(maxsplit=1)[0]
    return text[0].lower() + text[1:] if first.lower() in _LOWER else text


def clause(rng: random.Random, held_out: bool = False) -> str:
    """A sentence without its full stop, begun in lower case where its first word allows it."""
    return lowered(rng.choice(_corpus()[0][held_out]))[:-1]


def _keywords(sentence: str, rng: random.Random) -> list[str]:
    """Two or three telling words of the sentence in their order, one of them rare."""
    seen = _corpus()[1]
    words = list(dict.fromkeys(_WORD.findall(sentence)))
    rare = [w for w in words if seen[w.lower()] <= 40] or sorted(words, key=lambda w: seen[w.lower()])[:1]
    telling = [w for w in words if seen[w.lower()] <= 400]
    chosen = {rng.choice(rare)} if rare else set()
    chosen.update(rng.sample(telling, min(len(telling), rng.choice((1, 2, 2)))))
    return [w for w in words if w in chosen]


def _span(sentence: str, rng: random.Random) -> str:
    """Three to six words in a row around a rare one."""
    seen = _corpus()[1]
    words = sentence[:-1].split()
    rare = [i for i, w in enumerate(words) if seen[w.strip(",;:()'\"").lower()] <= 40]
    at = rng.choice(rare or range(len(words)))
    start = max(0, at - rng.randint(0, 3))
    return lowered(" ".join(words[start : start + rng.randint(3, 6)]).strip(",;:"))


def filler(rng: random.Random, held_out: bool, fresh: bool) -> tuple[str, tuple[str, ...], str, bool]:
    """A sentence (`{S}` for its subject where it can have one), questions with `{N}`, its last words, and whether it
    is about the subject."""
    source = rng.choice(_corpus()[0][held_out]).replace("{", "(").replace("}", ")")
    statement, about = source, False
    first, rest = source.split(maxsplit=1)
    if first.lower() in _VERBS and rng.random() < 0.8:
        statement, about = "{S} " + third(first.lower()) + " " + rest, True
    elif first == "It" or (first == "This" and rng.random() < 0.5):
        statement, about = "{S} " + (rest if first == "It" else rest.split(maxsplit=1)[-1]), True
    asked = []
    for _ in range(3):
        key = " ".join(_keywords(rest[:-1] + ".", rng)) if rng.random() < 0.5 else _span(rest, rng)
        pattern = rng.choice(_FRESH_PATTERNS if fresh else _PATTERNS)
        question = pattern.format(k=key)
        halves = _COPULA.match(statement)
        draw = rng.random()
        if about and first.lower() in _VERBS and draw < 0.5:
            question = "what does {N} " + first.lower()
            question += " " + key if rng.random() < 0.6 else ""
        elif about:
            question = rng.choice(
                ("{N} " + key, question + " in {N}", "{N}: " + question, question + " of {N}")
            )
        elif halves and draw < 0.6:
            subject, verb, tail = lowered(halves[1]), halves[2], halves[3]
            words = tail.split()
            tail = " ".join(words[: rng.randint(3, 8)]).strip(",;:(")
            if verb in ("is", "are", "was", "were"):
                forms = [f"what {verb} {subject}", f"what {verb} {tail}", f"{verb} {subject} {tail}"]
            elif verb in ("contains", "returns", "uses"):
                forms = [f"what does {subject} {verb[:-1]}", f"what {verb} {tail}"]
            else:
                forms = [f"what {verb} {subject} do", f"what {verb} {tail}", f"{subject} {verb}"]
            question = rng.choice(forms)
        elif rng.random() < 0.3:
            question = rng.choice((question + " in {N}", "{N} " + key))
        asked.append(question)
    return statement, tuple(asked), " ".join(source[:-1].split()[-2:]), about
