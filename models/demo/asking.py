"""Questions as people type them: lower case, slips, small words dropped, something before and after."""

from __future__ import annotations

import random
import re
import tomllib
from pathlib import Path
from typing import Any

from names import typo

ASKING: dict[str, Any] = tomllib.loads(Path(__file__).with_name("asking.toml").read_text())
_DROPPED = re.compile(r"\b(?:the|is|does|did|was|do|a|an|are|of) ", re.I)


def either(name: str, rng: random.Random, fresh: bool) -> str:
    """An entry of a list, or of the one kept for evaluation."""
    return str(rng.choice(ASKING["fresh_" + name if fresh else name]))


def typed(
    question: str, names: tuple[str, ...], rng: random.Random, fresh: bool = False, shouted: float = 0.03
) -> tuple[str, tuple[str, ...]]:
    """The question as a person types it, and the names as they then stand in it; `fresh` takes the manners kept for
    evaluation; `shouted` is the share in capitals of what is left as it is."""
    text, shown = question, names
    draw = rng.random()
    if draw < 0.12:
        text = _careless(text, shown, rng)
    if rng.random() < 0.15:
        text = either("leads", rng, fresh) + text
    if rng.random() < 0.35:
        text, shown = text.lower(), tuple(n.lower() for n in names)
    elif rng.random() < 0.5:
        text = text[:1].upper() + text[1:]
    elif rng.random() < shouted:
        text, shown = text.upper(), tuple(n.upper() for n in names)
    if rng.random() < 0.08:
        for _ in range(4):
            slipped = typo(text, rng)
            if all(_stands(n, slipped) for n in shown):
                text = slipped
                break
    end = rng.random()
    if end < 0.45:
        text += "?"
    elif end < 0.55:
        text += either("ends", rng, fresh)
    return text, tuple(n if n in text else n[:1].upper() + n[1:] for n in shown)


def _stands(name: str, text: str) -> bool:
    """Whether a name stands in the text as it is, no letter of its ends doubled."""
    left, right = (r"\b" if end.isalnum() else "" for end in (name[0], name[-1]))
    return re.search(left + re.escape(name) + right, text) is not None


def _careless(text: str, names: tuple[str, ...], rng: random.Random) -> str:
    """Small words dropped, or words written as in a chat; the names stay."""
    slurs: dict[str, list[str]] = ASKING["slurs"]
    if rng.random() < 0.5:
        changed = _DROPPED.sub("", text)
    else:
        found = [k for k in slurs if re.search(rf"\b{k}\b", text)]
        if not found:
            return text
        key = rng.choice(found)
        changed = re.sub(rf"\b{key}\b", rng.choice(slurs[key]), text, count=1)
    return changed if changed and all(n in changed for n in names) else text
