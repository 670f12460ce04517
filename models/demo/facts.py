"""The facts that made-up pages state, read from `facts_language.toml` and `facts_general.toml`."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Row:
    """A relation: the fields that carry the fact, choices for `{C}`, templates of statements and questions."""

    relation: str
    keys: str
    statements: tuple[str, ...]
    questions: tuple[str, ...]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kind:
    """A kind of subject with what may stand for its name and the facts told of it."""

    pronouns: tuple[str, ...]
    rows: tuple[Row, ...]


def _load(path: Path) -> dict[str, Kind]:
    kinds = {}
    for name, table in tomllib.loads(path.read_text()).items():
        rows = tuple(
            Row(**{k: tuple(v) if isinstance(v, list) else v for k, v in r.items()}) for r in table["facts"]
        )
        kinds[name] = Kind(tuple(table["pronouns"]), rows)
    return kinds


KINDS: dict[str, Kind] = _load(HERE / "facts_language.toml") | _load(HERE / "facts_general.toml")
GENERAL: tuple[str, ...] = tuple(k for k in KINDS if k != "language")
