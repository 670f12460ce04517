"""From a question to the terms to search for."""

from __future__ import annotations

import json
import re

import msgspec
from msgspec import Struct

from gateway.ask.generation import Model
from gateway.ask.text.words import is_stop_word
from gateway.models.prompts import Prompt

MOST_TERMS = 3
_LEAST_CHARACTERS, _MOST_CHARACTERS = 2, 64
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
_PUNCTUATION = ".,;:!?\"'()[]{}“”‘’«»…`"
_MAX_TOKENS = 64


class Terms(Struct, frozen=True):
    """Terms in the order to search them. ``source`` names the model, the question's key words, or both."""

    terms: list[str]
    source: str


async def generate_terms(model: Model, prompt: Prompt, subject: str, question: str) -> Terms:
    """Generate search terms, with the question's key words where the model's are unusable."""
    values = {"subject": subject, "question": question}
    generated = await model.generate("terms", prompt, values, shared=("subject",), max_tokens=_MAX_TOKENS)
    return choose_terms(parse_terms(generated.text), question)


def parse_terms(output: str) -> list[str]:
    """Return the strings of a JSON list, even if the token limit has cut it off."""
    try:
        return msgspec.json.decode(output.strip(), type=list[str])
    except msgspec.DecodeError:
        pass
    found = []
    for literal in _JSON_STRING.findall(output):
        try:
            found.append(json.loads(literal, strict=False))
        except ValueError:
            continue
    return found


def choose_terms(proposed: list[str], question: str) -> Terms:
    """Choose up to three distinct terms of 2 to 64 characters, first those that occur in the question.

    If none of the model's terms occurs in the question, the question's key words are added; if none is usable,
    the key words replace them.
    """
    cleaned = _distinct([_clean(term) for term in proposed])
    inside = [term for term in cleaned if occurs_in(term, question)]
    outside = [term for term in cleaned if term not in inside]
    if inside:
        return Terms((inside + outside)[:MOST_TERMS], "model")
    key_words = key_terms(question)
    if not outside:
        return Terms(key_words, "key words of the question")
    own = outside[: MOST_TERMS - 1] if key_words else outside[:MOST_TERMS]
    together = _distinct(own + key_words)[:MOST_TERMS]
    source = "model and key words of the question" if len(together) > len(own) else "model"
    return Terms(together, source)


def occurs_in(term: str, question: str) -> bool:
    """Whether the question contains the term as whole words, ignoring case and spacing."""
    wanted = r"\s+".join(re.escape(word) for word in term.casefold().split())
    return bool(wanted) and re.search(rf"(?<!\w){wanted}(?!\w)", question.casefold()) is not None


def key_terms(question: str) -> list[str]:
    """Extract names (runs of capitalised or unusual words) one by one, then the other content words as one term.

    The first word of a sentence counts as a name only before another one: "Urban Müller …", not "After whom …".
    """
    names: list[str] = []
    others: list[str] = []
    run: list[str] = []
    words = question.split()
    for word, before, after in zip(words, ["", *words], [*words[1:], ""], strict=False):
        bare = _bare(word)
        begins = (not before or before[-1] in ".!?") and bare.istitle() and not _is_odd(_bare(after))
        if bare and not is_stop_word(bare) and _is_odd(bare) and not begins:
            run.append(bare)
            if word[-1] not in ",;:":
                continue
            bare = ""
        if run:
            names.append(" ".join(run))
            run = []
        if bare and not is_stop_word(bare):
            others.append(bare)
    terms = [*names, " ".join(run), " ".join(others)]
    return _distinct([_clean(term[:_MOST_CHARACTERS]) for term in terms])[:MOST_TERMS]


def _bare(word: str) -> str:
    """Strip the punctuation around a word and a possessive ``'s``."""
    bare = word.strip(_PUNCTUATION)
    return bare[:-2] if bare.endswith(("'s", "’s")) else bare


def _is_odd(word: str) -> bool:
    """Whether the word has a capital or a sign that ordinary words lack, as in C++, ><> and HQ9+."""
    return word != word.lower() or not word.replace("-", "").replace("'", "").replace("’", "").isalpha()


def _clean(term: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in term).split())


def _distinct(terms: list[str]) -> list[str]:
    found: dict[str, str] = {}
    for term in terms:
        if _LEAST_CHARACTERS <= len(term) <= _MOST_CHARACTERS:
            found.setdefault(term.casefold(), term)
    return list(found.values())
