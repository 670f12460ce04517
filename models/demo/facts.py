"""The facts that made-up pages state, read from `facts_*.toml` and, for more wordings, `wordings.toml` and
`more_wordings.toml`."""

from __future__ import annotations

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


def _load(path: Path, more: list[dict[str, Any]]) -> dict[str, Kind]:
    kinds = {}
    for name, table in tomllib.loads(path.read_text()).items():
        rows = []
        for r in table["facts"]:
            values = {k: tuple(v) if isinstance(v, list) else v for k, v in r.items()}
            for tables in more:
                added = tables.get(name, {}).get(r["relation"], {})
                for part in ("statements", "questions"):
                    values[part] += tuple(added.get(part, ()))
                values["label"] = values.get("label") or added.get("label", "")
            rows.append(Row(**values))
        kinds[name] = Kind(tuple(table["pronouns"]), tuple(rows))
    return kinds


_MORE = [tomllib.loads((HERE / name).read_text()) for name in ("wordings.toml", "more_wordings.toml")]
KINDS: dict[str, Kind] = _load(HERE / "facts_language.toml", _MORE) | _load(
    HERE / "facts_general.toml", _MORE
)
GENERAL: tuple[str, ...] = tuple(k for k in KINDS if k != "language")
