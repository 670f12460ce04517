"""What the memory notes after an exchange: facts about the user and changes of tasks, in its two JSON forms.

The shapes are those of `prompts/facts.md` and `prompts/tasks.md`: fields in that order, quotes word for word.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import articles
from grammar import fill
from salad import phrase
from sayings import (
    ME,
    NOTES,
    as_typed,
    asked_of_self,
    pick_saying,
    remark,
    request,
    said_in_chat,
    said_of_self,
    task_said,
    values_for,
)
from trees import Branch, Tree, split
from words import VERBS

from prompts import render

_MARKS = {"open": " ", "doing": ">", "waiting": "?", "done": "x"}


def _idle(rng: random.Random, job: str, held_out: bool, fresh: bool) -> str:
    """A line that changes nothing here: for facts it may be a task, for tasks a fact."""
    if held_out or rng.random() < 0.4:
        return fill(rng.choice(NOTES["fresh_idle" if fresh else "idle"]), values_for(rng, held_out))
    draw = rng.random()
    if draw < 0.35:
        return request(rng)
    if draw < 0.6:
        return asked_of_self(rng)
    if draw < 0.8:
        return remark(rng)
    if job == "facts":
        return task_said(rng)
    return next(s.text for s in iter(lambda: said_of_self(rng), None) if s.key != "plan")


def _conversation(told: list[str], rng: random.Random, job: str, held_out: bool, fresh: bool) -> str:
    """The user's sayings in their order, idle ones between, with the assistant's replies."""
    turns: list[str] = list(told)
    for _ in range(rng.choice((0, 0, 1)) if told else rng.randint(1, 2)):
        turns.insert(rng.randint(0, len(turns)), _idle(rng, job, held_out, fresh))
    lines = []
    while turns:
        together = 2 if len(turns) > 1 and rng.random() < 0.25 else 1
        lines.append("User: " + rng.choice((" ", "\n")).join(turns[:together]))
        reply = fill(rng.choice(NOTES["assistant"]), values_for(rng, held_out))
        if not held_out and rng.random() < 0.5:
            reply = ME if rng.random() < 0.8 else "You said: " + said_in_chat(rng).text
        lines.append("Assistant: " + reply)
        turns = turns[together:]
    return "\n".join(lines[:-1] if rng.random() < 0.3 else lines)


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
    for row in chosen[: rng.choice((0, 0, 0, 1, 2) if held_out else (0, 0, 1, 2, 4, 7))]:
        values = values_for(rng, held_out)
        known[fill(row["key"], values)] = fill(row["text"], values)
    told, operations = [], []
    for row in rng.sample(chosen, rng.choice((0, 1, 1, 1, 1, 2))):
        values = values_for(rng, held_out)
        key = fill(row["key"], values)
        said = as_typed(fill(pick_saying(row["says"], rng, fresh), values), rng)
        op = "update" if key in known else "add"
        told.append(said)
        operations.append(_operation(op, key, fill(row["text"], values), said, row["reason"]))
    free = [key for key in known if key not in [o["key"] for o in operations]]
    if free and rng.random() < 0.25:
        key = rng.choice(free)
        said = as_typed(fill(pick_saying(NOTES["taken_back"]["says"], rng, fresh), {"key": key}), rng)
        told.append(said)
        operations.append(_operation("delete", key, "", said, NOTES["taken_back"]["reason"]))
    text = render(
        "facts",
        known="\n".join(f"- {key}: {value}" for key, value in known.items()) or "(none)",
        dialogue=_conversation(told, rng, "facts", held_out, fresh),
    )
    return text, operations


def _operation(op: str, key: str, text: str, quote: str, reason: str) -> dict[str, str]:
    return {"op": op, "key": key, "text": text, "quote": quote, "reason": reason}


def _title(rng: random.Random) -> str:
    return f"{rng.choice(VERBS)} {phrase(rng)}"


def _tasks(rng: random.Random, held_out: bool) -> tuple[str, list[dict[str, str]]]:
    fresh = held_out and rng.random() < articles.FRESH_SHARE
    day = f"T-2026{rng.randint(1, 12):02d}{rng.randint(1, 28):02d}"
    known = {
        f"{day}-{n:02d}": _title(rng)
        for n in rng.sample(range(1, 30), rng.choice((0, 0, 1, 2) if held_out else (0, 0, 1, 2, 4, 7)))
    }
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
        values: Mapping[str, str] = values_for(rng, held_out) | {"t": title, "i": i, "u": _title(rng)}
        said = as_typed(fill(pick_saying(NOTES["tasks"][op], rng, fresh), values), rng)
        told.append(said)
        shown = {"add": title, "add_item": values["u"]}.get(op, "")
        changes.append({"op": op, "id": i, "title": shown, "quote": said})
    text = render(
        "tasks",
        known="\n".join(lines) or "(none)",
        dialogue=_conversation(told, rng, "tasks", held_out, fresh),
    )
    return text, changes
