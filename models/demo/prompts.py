"""The product's own prompt files, read and filled as the product does."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

DIRECTORY = Path(__file__).resolve().parents[2] / "prompts"
REFUSAL = "The wiki does not say."
NOTHING = "Nothing relevant."


@cache
def body(name: str) -> str:
    """The text of a prompt file without its front matter."""
    text = (DIRECTORY / f"{name}.md").read_text()
    _, front, rest = text.split("+++", 2)
    tomllib.loads(front)
    return rest.strip()


@cache
def schema(name: str) -> dict[str, Any]:
    """The JSON schema that a prompt constrains its replies to."""
    front = tomllib.loads((DIRECTORY / f"{name}.md").read_text().split("+++", 2)[1])
    found: dict[str, Any] = front["output"]["schema"]
    return found


def answer_styles() -> list[str]:
    """Names of the answer prompts, one per style."""
    return sorted(p.stem for p in DIRECTORY.glob("answer_*.md"))


def render(name: str, **values: str) -> str:
    """A prompt with its variables replaced in one pass, so that values are never expanded again."""
    parts = body(name).split("{{")
    out = [parts[0]]
    for part in parts[1:]:
        variable, rest = part.split("}}", 1)
        out.append(values[variable.strip()] + rest)
    return "".join(out)
