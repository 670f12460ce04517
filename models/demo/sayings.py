"""What users say in chats: of themselves, of their tasks, and in passing; from `notes.toml` and `chats.toml`."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from grammar import fill
from names import nickname, person_name, thing_name
from salad import number, phrase
from words import ADJECTIVES, MONTHS, NOUNS, VERBS, plural

ME = "I am the small demo model of hearth. Run `hearth pull gemma-4-e2b` for a real one."
_HERE = Path(__file__).parent
NOTES: dict[str, Any] = tomllib.loads((_HERE / "notes.toml").read_text())
CHATS: dict[str, Any] = tomllib.loads((_HERE / "chats.toml").read_text())
# Of two things that a question may be about, a saying has one.
_EITHER = ("cat", "dog", "wife", "husband", "son", "daughter")


class Saying(NamedTuple):
    """A user's line, the questions that it answers later, and the fact that is noted of it with its key, if any."""

    text: str
    asks: tuple[str, ...]
    key: str = ""
    fact: str = ""


def values_for(rng: random.Random, held_out: bool) -> dict[str, str]:
    """The fields of the templates."""
    word = rng.choice(NOUNS)
    return {
        "T": thing_name(rng, held_out),
        "U": thing_name(rng, held_out),
        "P": nickname(rng, held_out) if rng.random() < 0.5 else person_name(rng, held_out),
        "Q": nickname(rng, held_out),
        "n": word,
        "ns": plural(word),
        "a": rng.choice(ADJECTIVES),
        "k": number(rng),
        "d": f"{rng.randint(1, 28)} {rng.choice(MONTHS)}",
        "w": phrase(rng),
        "v": rng.choice(VERBS),
    }


def pick_saying(sayings: list[str], rng: random.Random, fresh: bool) -> str:
    """A saying for training, or one kept for evaluation."""
    return rng.choice([s for s in sayings if s.startswith("~") == fresh]).removeprefix("~")


def as_typed(text: str, rng: random.Random) -> str:
    """With or without a capital and a full stop."""
    if rng.random() < 0.4:
        text = text[0].upper() + text[1:]
    elif rng.random() < 0.3:
        text = text[0].lower() + text[1:]
    return text.removesuffix(".") if rng.random() < 0.4 else text


def _filled(row: Mapping[str, Any], values: Mapping[str, str], rng: random.Random, fresh: bool) -> Saying:
    said = as_typed(fill(pick_saying(row["says"], rng, fresh), values), rng)
    words = said.lower().split()
    fitting = [a for a in row["asks"] if not any(w in a and w not in words for w in _EITHER)]
    return Saying(said, tuple(fill(a, values) for a in fitting))


def said_of_self(rng: random.Random, held_out: bool = False, fresh: bool = False) -> Saying:
    """A line worth noting, with the fact."""
    row, values = rng.choice(NOTES["facts"]), values_for(rng, held_out)
    saying = _filled(row, values, rng, fresh)
    return saying._replace(key=fill(row["key"], values), fact=fill(row["text"], values))


def said_in_chat(rng: random.Random, held_out: bool = False, fresh: bool = False) -> Saying:
    """Any line that is no question: of oneself, of something else, or a remark that answers nothing."""
    draw = rng.random()
    if draw < 0.4 or fresh:
        return said_of_self(rng, held_out, fresh)
    if draw < 0.75:
        return _filled(rng.choice(CHATS["told"]), values_for(rng, held_out), rng, False)
    return Saying(remark(rng, held_out) if draw < 0.9 else task_said(rng), ())


def remark(rng: random.Random, held_out: bool = False) -> str:
    """A line of no consequence."""
    return as_typed(fill(rng.choice(CHATS["remarks"]), values_for(rng, held_out)), rng)


def task_said(rng: random.Random) -> str:
    """A line that asks for a new task."""
    title = f"{rng.choice(VERBS)} {phrase(rng)}"
    return as_typed(fill(pick_saying(NOTES["tasks"]["add"], rng, False), {"t": title}), rng)


def request(rng: random.Random, held_out: bool = False) -> str:
    """A question or a wish that a chat does not answer."""
    lists = (NOTES["idle"], CHATS["requests"], CHATS["requests"])
    return fill(str(rng.choice(rng.choice(lists))), values_for(rng, held_out))


def asked_of_self(rng: random.Random) -> str:
    """A question about what the user may have told."""
    row, values = rng.choice([*NOTES["facts"], *CHATS["told"]]), values_for(rng, False)
    return fill(str(rng.choice(row["asks"])), values)


def reply_of_assistant(rng: random.Random) -> str:
    """What an assistant may have said."""
    return fill(rng.choice(NOTES["assistant"]), values_for(rng, False))
