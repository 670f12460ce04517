"""What the memory notes after an exchange: facts about the user and changes of tasks, in its two JSON forms.

The shapes are those of `prompts/facts.md` and `prompts/tasks.md`: fields in that order, quotes word for word.
"""

from __future__ import annotations

import json
import random
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import articles
from grammar import fill
from names import nickname, person_name, thing_name
from salad import number, phrase
from trees import Branch, Tree, split
from words import ADJECTIVES, MONTHS, NOUNS, VERBS, plural

from prompts import render

NOTES: dict[str, Any] = tomllib.loads(Path(__file__).with_name("notes.toml").read_text())
_MARKS = {"open": " ", "doing": ">", "waiting": "?", "done": "x"}


def _values(rng: random.Random, held_out: bool) -> dict[str, str]:
    word = rng.choice(NOUNS)
    return {
        "T": thing_name(rng, held_out),
        "P": nickname(rng, held_out) if rng.random() < 0.5 else person_name(rng, held_out),
        "n": word,
        "ns": plural(word),
        "a": rng.choice(ADJECTIVES),
        "k": number(rng),
        "d": f"{rng.randint(1, 28)} {rng.choice(MONTHS)}",
        "w": phrase(rng),
        "v": rng.choice(VERBS),
    }


def _pick(sayings: list[str], rng: random.Random, fresh: bool) -> str:
    """A saying for training, or one kept for evaluation."""
    return rng.choice([s for s in sayings if s.startswith("~") == fresh]).removeprefix("~")


def _said(text: str, rng: random.Random) -> str:
    """As it is typed: with or without a capital and a full stop."""
    if rng.random() < 0.4:
        text = text[0].upper() + text[1:]
    elif rng.random() < 0.3:
        text = text[0].lower() + text[1:]
    return text.removesuffix(".") if rng.random() < 0.4 else text


def _conversation(told: list[str], rng: random.Random, held_out: bool, fresh: bool) -> str:
    """The user's sayings in their order, idle ones between, with the assistant's replies."""
    turns: list[str] = list(told)
    for _ in range(rng.choice((0, 0, 1)) if told else rng.randint(1, 2)):
        idle = NOTES["fresh_idle" if fresh else "idle"]
        turns.insert(rng.randint(0, len(turns)), fill(rng.choice(idle), _values(rng, held_out)))
    lines = []
    while turns:
        together = 2 if len(turns) > 1 and rng.random() < 0.25 else 1
        lines.append("User: " + rng.choice((" ", "\n")).join(turns[:together]))
        lines.append("Assistant: " + fill(rng.choice(NOTES["assistant"]), _values(rng, held_out)))
        turns = turns[together:]
    return "\n".join(lines[:-1] if rng.random() < 0.3 else lines)


def said_facts(rng: random.Random) -> tuple[str, str, str]:
    """A fact that a user tells: its key, the saying, and the fact as it is noted."""
    row, values = rng.choice(NOTES["facts"]), _values(rng, False)
    said = _said(fill(_pick(row["says"], rng, False), values), rng)
    return fill(row["key"], values), said, fill(row["text"], values)


def said_idly(rng: random.Random) -> str:
    """What a user says that is not worth noting."""
    return fill(rng.choice(NOTES["idle"]), _values(rng, False))


def said_in_reply(rng: random.Random) -> str:
    """What an assistant may have said."""
    return fill(rng.choice(NOTES["assistant"]), _values(rng, False))


def facts_tree(rng: random.Random, held_out: bool, branches: int = 1) -> Tree:
    """Conversations in which users tell of themselves, as operations on the known facts."""
    return _tree("facts", "Known facts:", [_facts(rng, held_out) for _ in range(branches)])


def tasks_tree(rng: random.Random, held_out: bool, branches: int = 1) -> Tree:
    """Conversations in which users speak of their tasks, as changes of the known ones."""
    return _tree("tasks", "Known tasks:", [_tasks(rng, held_out) for _ in range(branches)])


def _tree(job: str, marker: str, made: list[tuple[str, list[dict[str, str]]]]) -> Tree:
    """Prompts of one job with their replies; they share what stands before the marker."""
    tree = Tree(job, "")
    for text, rows in made:
        tree.prefix, suffix = split(text, marker)
        target = json.dumps(rows, ensure_ascii=False)
        tree.branches.append(Branch(suffix, target, tuple(row["quote"] for row in rows)))
    return tree


def _facts(rng: random.Random, held_out: bool) -> tuple[str, list[dict[str, str]]]:
    fresh = held_out and rng.random() < articles.FRESH_SHARE
    chosen = rng.sample(NOTES["facts"], 8)
    known: dict[str, str] = {}
    for row in chosen[: rng.choice((0, 0, 0, 1, 2))]:
        values = _values(rng, held_out)
        known[fill(row["key"], values)] = fill(row["text"], values)
    told, operations = [], []
    for row in rng.sample(chosen, rng.choice((0, 1, 1, 1, 1, 2))):
        values = _values(rng, held_out)
        key = fill(row["key"], values)
        said = _said(fill(_pick(row["says"], rng, fresh), values), rng)
        op = "update" if key in known else "add"
        told.append(said)
        operations.append(_operation(op, key, fill(row["text"], values), said, row["reason"]))
    free = [key for key in known if key not in [o["key"] for o in operations]]
    if free and rng.random() < 0.25:
        key = rng.choice(free)
        said = _said(fill(_pick(NOTES["taken_back"]["says"], rng, fresh), {"key": key}), rng)
        told.append(said)
        operations.append(_operation("delete", key, "", said, NOTES["taken_back"]["reason"]))
    text = render(
        "facts",
        known="\n".join(f"- {key}: {value}" for key, value in known.items()) or "(none)",
        dialogue=_conversation(told, rng, held_out, fresh),
    )
    return text, operations


def _operation(op: str, key: str, text: str, quote: str, reason: str) -> dict[str, str]:
    return {"op": op, "key": key, "text": text, "quote": quote, "reason": reason}


def _title(rng: random.Random) -> str:
    return f"{rng.choice(VERBS)} {phrase(rng)}"


def _tasks(rng: random.Random, held_out: bool) -> tuple[str, list[dict[str, str]]]:
    fresh = held_out and rng.random() < articles.FRESH_SHARE
    day = f"T-2026{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}"
    known = {f"{day}-{n:02d}": _title(rng) for n in rng.sample(range(1, 30), rng.choice((0, 0, 1, 2)))}
    lines = [
        f"[{_MARKS[rng.choice(list(_MARKS))]}] {i} ({rng.choice(('user', 'user', 'hybrid', 'model'))}) {t}"
        for i, t in known.items()
    ]
    told, changes = [], []
    states = ("doing", "waiting", "done", "done", "cancelled", "add_item")
    free = list(known.items())
    rng.shuffle(free)
    for _ in range(rng.choice((0, 1, 1, 1, 1, 2))):
        op = rng.choice(states) if free and rng.random() < 0.6 else "add"
        i, title = free.pop() if op != "add" else ("", _title(rng))
        values: Mapping[str, str] = _values(rng, held_out) | {"t": title, "i": i, "u": _title(rng)}
        said = _said(fill(_pick(NOTES["tasks"][op], rng, fresh), values), rng)
        told.append(said)
        shown = {"add": title, "add_item": values["u"]}.get(op, "")
        changes.append({"op": op, "id": i, "title": shown, "quote": said})
    text = render(
        "tasks",
        known="\n".join(lines) or "(none)",
        dialogue=_conversation(told, rng, held_out, fresh),
    )
    return text, changes
