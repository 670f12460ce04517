"""Templates with alternatives: `[made|written] by {P}` stands for every choice of the bracketed parts.

A template that begins with `~` is used in evaluation only, and so is one expansion in ten (by checksum).
"""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Mapping, Sequence

_INNER = re.compile(r"\[([^\[\]]*)\]")
_FIELD = re.compile(r"\{(\w+)\}")


def expand(template: str, rng: random.Random) -> str:
    """Choose one alternative of every bracket, innermost first."""
    while True:
        found = _INNER.search(template)
        if not found:
            return template
        template = template[: found.start()] + rng.choice(found[1].split("|")) + template[found.end() :]


def pick(templates: Sequence[str], rng: random.Random, held_out: bool = False) -> str:
    """An expanded template for training, or for evaluation one that training never shows where there is one."""
    fallback = ""
    for _ in range(12):
        chosen = rng.choice(templates)
        reserved = chosen.startswith("~")
        text = expand(chosen.removeprefix("~"), rng)
        reserved = reserved or ("[" in chosen and zlib.crc32(text.encode()) % 10 == 0)
        if reserved == held_out:
            return text
        if not reserved:
            fallback = text
    return fallback or expand(next(t for t in templates if not t.startswith("~")), rng)


def fill(text: str, fields: Mapping[str, str]) -> str:
    """Replace every `{field}`; values are inserted as they are, and other words in braces stay: asides are made of any
    signs."""
    return _FIELD.sub(lambda m: fields.get(m[1], m[0]), text)


def sentence_case(text: str) -> str:
    """The text with its first letter raised, the rest untouched."""
    return text[:1].upper() + text[1:]
