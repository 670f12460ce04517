"""The facts that made-up pages state, read from `facts_*.toml` and, for more wordings, `wordings.toml` and
`more_wordings.toml`; for training also from `paraphrases.toml` and `more_kinds.toml`."""

from __future__ import annotations

import random
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Row:
    """A relation: the fields that carry the fact, templates of statements and questions, choices for `{C}`, and
    the label of its row in a table of facts."""

    relation: str
    keys: str
    statements: tuple[str, ...]
    questions: tuple[str, ...]
    choices: tuple[str, ...] = ()
    label: str = ""


@dataclass(frozen=True)
class Kind:
    """A kind of subject with what may stand for its name and the facts told of it."""

    pronouns: tuple[str, ...]
    rows: tuple[Row, ...]


def _tables(*names: str) -> list[dict[str, Any]]:
    return [tomllib.loads((HERE / name).read_text()) for name in names]


def _row(given: dict[str, Any], wordings: list[dict[str, Any]]) -> Row:
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in given.items()}
    for added in wordings:
        for part in ("statements", "questions"):
            values[part] += tuple(added.get(part, ()))
        values["label"] = values.get("label") or added.get("label", "")
    return Row(**values)


def _kinds(tables: list[dict[str, Any]], wordings: list[dict[str, Any]]) -> dict[str, Kind]:
    """The kinds of the tables, a kind's relations from all of them, with the wordings that are given besides."""
    kinds: dict[str, Kind] = {}
    for name in dict.fromkeys(name for table in tables for name in table):
        given = [table[name] for table in tables if name in table]
        rows = [
            _row(row, [w.get(name, {}).get(row["relation"], {}) for w in wordings])
            for table in given
            for row in table["facts"]
        ]
        kinds[name] = Kind(tuple(given[0]["pronouns"]), tuple(rows))
    return kinds


_FACTS = _tables("facts_language.toml", "facts_general.toml")
_WORDINGS = _tables("wordings.toml", "more_wordings.toml")
KINDS = _kinds(_FACTS, _WORDINGS)
TAUGHT = _kinds(_FACTS + _tables("more_kinds.toml"), _WORDINGS + _tables("paraphrases.toml"))


def kinds(held_out: bool) -> dict[str, Kind]:
    """What pages tell of: in training much more than in evaluation, whose cases stay as they are."""
    return KINDS if held_out else TAUGHT


def other_kind(rng: random.Random, held_out: bool) -> str:
    """A kind that is no language; those of evaluation come up more often than their number in training."""
    common = list(KINDS)[1:]
    return rng.choice(common if held_out or rng.random() < 0.35 else list(TAUGHT)[1:])


def relations(kind: str, rng: random.Random, held_out: bool) -> list[Row]:
    """The relations that a page of this kind may state: those of evaluation, and a third of those that only training
    has."""
    common = KINDS[kind].rows if kind in KINDS else ()
    rows = list(kinds(held_out)[kind].rows)
    return rows[: len(common)] + [r for r in rows[len(common) :] if not common or rng.random() < 0.3]
