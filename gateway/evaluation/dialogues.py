"""Long dialogues with planted items, superseded ones, secrets and tasks, for `hearth eval --memory`.

A file has a ``log`` of one message a line: ``> text`` is the user's, ``Name: text`` that of a speaker, ``< text`` the
assistant's; ``<?`` is a reply that the model writes. ``## date time`` is a silence; an indented line goes on.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Struct

from gateway.evaluation.questions import Question, reading
from gateway.store.memory.conversations import ConversationKind, PolicyName

_LINE = re.compile(r"(?P<role>[<>]) (?P<said>.+)|(?P<speaker>[^\W\d_][\w ]{0,30}): (?P<spoken>.+)")
_SILENCE = "## "
_BY_MODEL = "<?"


class Spoken(Struct, frozen=True):
    """A message. ``by_model``: the text is empty, and the model replies to the one before. ``at``: Unix seconds after a
    silence."""

    text: str = ""
    role: Literal["user", "assistant"] = "user"
    speaker: str = ""
    by_model: bool = False
    at: float | None = None


class PlantedFact(Struct, frozen=True, forbid_unknown_fields=True):
    """Something that was said, and the question whose answer it is.

    ``said`` is a part of the message, ``has`` are patterns of the answer, ``was`` those of what was true before.
    """

    asked: str
    said: str
    has: Annotated[list[str], Meta(min_length=1)]
    was: list[str] = []


class PlannedTask(Struct, frozen=True, forbid_unknown_fields=True):
    """A task that people speak of, with patterns of its title, and its state in the end."""

    title: list[str]
    state: Literal["open", "done", "cancelled"]


class Dialogue(Question, frozen=True, kw_only=True):
    """A dialogue under one policy, which is the category."""

    policy: PolicyName
    kind: ConversationKind
    log: list[Spoken]
    planted: list[PlantedFact]
    tasks: list[PlannedTask] = []
    secrets: list[str] = []

    @property
    def messages(self) -> int:
        return sum(line.at is None for line in self.log)


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    kind: ConversationKind
    log: str
    planted: list[PlantedFact]
    tasks: list[PlannedTask] = []
    secrets: list[str] = []


def is_dialogue(path: Path) -> bool:
    """Whether ``path`` is a folder of dialogues, or one of them."""
    return path.is_dir() or (path.is_file() and b"\nlog = " in path.read_bytes())


def load_dialogues(path: Path, messages: int | None = None) -> list[Dialogue]:
    """The dialogues of a folder or file, or their first ``messages``, each under every policy.

    Raises ConfigurationError that names the error.
    """
    found: list[Dialogue] = []
    cut = "" if messages is None else f" {messages}"
    for file in sorted(path.glob("*.toml")) if path.is_dir() else [path]:
        with reading("dialogue", file):
            read = msgspec.toml.decode(file.read_bytes(), type=_Document)
            log = list(_spoken(read.log))
            _check(read, log)
            if messages is not None:
                read, log = _begun(read, log, messages)
        found += [
            Dialogue(
                id=f"{file.stem} {policy}{cut}", category=policy, text=read.title, policy=policy, kind=read.kind,
                log=log, planted=read.planted, tasks=read.tasks, secrets=read.secrets,
            )
            for policy in get_args(PolicyName)
        ]  # fmt: skip
    return found


def _begun(read: _Document, log: Sequence[Spoken], messages: int) -> tuple[_Document, list[Spoken]]:
    """The first messages, the items and secrets in them, and the tasks of which no later message speaks."""
    counts = itertools.accumulate(line.at is None for line in log)
    cut = next((place for place, count in enumerate(counts) if count > messages), len(log))
    said, later = ("\n".join(line.text for line in part) for part in (log[:cut], log[cut:]))

    def speaks(text: str, title: Sequence[str]) -> bool:
        return all(re.search(pattern, text, re.IGNORECASE) for pattern in title)

    kept = msgspec.structs.replace(
        read,
        planted=[item for item in read.planted if item.said in said],
        secrets=[secret for secret in read.secrets if secret in said],
        tasks=[task for task in read.tasks if speaks(said, task.title) and not speaks(later, task.title)],
    )
    return kept, list(log[:cut])


def _spoken(log: str) -> Iterator[Spoken]:
    pending: list[str] = []
    for line in [*log.strip("\n").split("\n"), _SILENCE]:
        if line.startswith("    ") or not line:
            pending.append(line[4:])
            continue
        if pending:
            yield _message("\n".join(pending).strip())
        pending = [line]
        if line.startswith(_SILENCE):
            pending = []
            if moment := line.removeprefix(_SILENCE):
                yield Spoken(at=datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp())


def _message(text: str) -> Spoken:
    if text == _BY_MODEL:
        return Spoken(role="assistant", by_model=True)
    match = _LINE.fullmatch(text, endpos=len(text.split("\n", 1)[0]))
    if match is None:
        raise ValueError(f"`{text[:60]}` is no message: begin it with `> `, `< ` or `Name: `")
    said = text[match.start("said" if match["role"] else "spoken") :]
    return Spoken(said, "assistant" if match["role"] == "<" else "user", match["speaker"] or "")


def _check(read: _Document, log: Sequence[Spoken]) -> None:
    texts = [line.text for line in log]
    for item in read.planted:
        if not any(item.said in text for text in texts):
            raise ValueError(f"no message has `{item.said}`")
        for pattern in [*item.has, *item.was]:
            re.compile(pattern)
    for secret in read.secrets:
        if not any(secret in text for text in texts):
            raise ValueError(f"no message has the secret `{secret}`")
