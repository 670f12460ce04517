"""A prompt with its endings: the shape of every training and evaluation example.

A tree is one prompt beginning with several endings (questions on the same background), each with its target.
Training runs the beginning once; each branch sees only the beginning and itself, exactly as a separate prompt.
"""

from __future__ import annotations

from dataclasses import dataclass, field

# Between the turns of a chat: they stand for control tokens.
NEXT_MODEL = "<end_of_turn>\n<start_of_turn>model\n"
NEXT_USER = "<end_of_turn>\n<start_of_turn>user\n"


@dataclass(frozen=True)
class Branch:
    """One ending of a prompt, its target text and what an evaluation looks for in the reply."""

    suffix: str
    target: str
    keys: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()
    entities: tuple[str, ...] = ()


@dataclass
class Tree:
    """A job's shared prompt beginning with its branches; the texts join without a separator."""

    job: str
    prefix: str
    branches: list[Branch] = field(default_factory=list)


def split(text: str, marker: str) -> tuple[str, str]:
    """Cut a prompt before the last occurrence of a marker."""
    at = text.rindex(marker)
    return text[:at], text[at:]
