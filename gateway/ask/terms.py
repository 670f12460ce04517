"""From a question to the terms to search for."""

from __future__ import annotations

import json
import re

import msgspec

from gateway.ask.generation import Model
from gateway.models.prompts import Prompt

MOST_TERMS = 3
_LEAST_CHARACTERS, _MOST_CHARACTERS = 2, 64
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.S)
_MAX_TOKENS = 64


async def propose_terms(model: Model, prompt: Prompt, subject: str, question: str) -> list[str]:
    """Let the model write search terms. They may be useless; retrieval decides."""
    values = {"subject": subject, "question": question}
    generated = await model.generate("terms", prompt, values, shared=("subject",), max_tokens=_MAX_TOKENS)
    return usable(parse_terms(generated.text))


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


def usable(proposed: list[str]) -> list[str]:
    """The first three distinct terms of 2 to 64 characters."""
    found: dict[str, str] = {}
    for term in proposed:
        clean = " ".join("".join(c if c.isprintable() else " " for c in term).split())
        if _LEAST_CHARACTERS <= len(clean) <= _MOST_CHARACTERS:
            found.setdefault(clean.casefold(), clean)
    return list(found.values())[:MOST_TERMS]
