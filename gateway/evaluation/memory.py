"""Runs lines of conversation through learning, and scores the facts and task changes that it stores."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from typing import Annotated
from uuid import uuid4

import apsw
import msgspec
from msgspec import Meta, Struct

from gateway.base.errors import DeadlineError, HearthError
from gateway.evaluation.questions import Fact as Wanted
from gateway.evaluation.questions import Question, reading
from gateway.evaluation.score import Row
from gateway.memory.context import MemoryParts
from gateway.memory.events import PostCall
from gateway.memory.planning.budget import time_zone
from gateway.memory.service import Conversations
from gateway.store.db import Database
from gateway.store.memory.conversations import Conversation, add_conversation
from gateway.store.memory.facts import list_facts
from gateway.store.memory.jobs import open_jobs
from gateway.store.memory.tasks import NewTask, add_task, list_tasks

_ASSISTANT = "assistant: "
_MOST = 100  # facts or tasks of a line
_SECONDS = 600.0
_POLL_SECONDS = 0.01


class MemoryLine(Question, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A user's message, the facts and tasks that must be stored of it, and those that may be.

    A fact is a pattern of its key and patterns that its text contains. A task is an operation (a state, or ``add``) and
    patterns of the title. ``open`` are titles of tasks that exist before.
    """

    said: str | list[str]
    id: str = ""
    category: str = ""
    text: str = ""
    tasks: list[Wanted] = []
    may: list[Wanted] = []
    may_tasks: list[Wanted] = []
    open: list[str] = []


class _Group(Struct, frozen=True, forbid_unknown_fields=True):
    language: str
    kind: str
    lines: list[MemoryLine] = []
    traps: list[str] = []


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    group: Annotated[list[_Group], Meta(min_length=1)]


def load_lines(path: Path) -> list[MemoryLine]:
    """Read a set of lines. Raises ConfigurationError that names the file and the error in it."""
    with reading("set of lines", path):
        groups = msgspec.toml.decode(path.read_bytes(), type=_Document).group
        lines: list[MemoryLine] = []
        for group in groups:
            category = f"{group.language} {group.kind}"
            for line in [*group.lines, *(MemoryLine(said=said) for said in group.traps)]:
                text = line.said if isinstance(line.said, str) else "\n".join(line.said)
                name = f"{category} {sum(each.category == category for each in lines) + 1}"
                lines.append(msgspec.structs.replace(line, id=name, category=category, text=text))
                for each in [*line.facts, *line.may, *line.tasks, *line.may_tasks]:
                    re.compile("|".join(each))
    return lines


async def learned(
    parts: MemoryParts, conversations: Conversations, lines: Sequence[Question]
) -> AsyncIterator[Row]:
    """Send each line to a conversation of a new owner, and yield its row once the memory has read it.

    Raises HearthError if the memory cannot read a line.
    """
    for line in lines:
        assert isinstance(line, MemoryLine)
        begun = time.monotonic()
        stored, changed = await _learned(parts, conversations, line)
        yield _scored(line, stored, changed, time.monotonic() - begun)


async def _learned(
    parts: MemoryParts, conversations: Conversations, line: MemoryLine
) -> tuple[list[list[str]], list[list[str]]]:
    """Return the facts that the line leaves, as key and text, and its task changes, as operation and title."""
    owner, now = str(uuid4()), parts.clock()
    talk = Conversation(
        id=str(uuid4()),
        owner=owner,
        kind="code" if line.category.startswith("code ") else "chat",
        policy=parts.settings.policy,
        created_at=now,
        updated_at=now,
    )

    def prepare(connection: apsw.Connection) -> dict[str, str]:
        add_conversation(connection, talk)
        day = datetime.now(time_zone(parts.settings.time_zone)).date().isoformat()
        tasks = [
            NewTask(owner=owner, level="task", title=title, day=day, created_at=now) for title in line.open
        ]
        return {add_task(connection, task).id: "open" for task in tasks}

    before = await parts.database.write(prepare)
    for said in [line.said] if isinstance(line.said, str) else line.said:
        by_user = not said.startswith(_ASSISTANT)
        call = PostCall(
            id=str(uuid4()),
            conversation=talk,
            text=said.removeprefix(_ASSISTANT),
            role="user" if by_user else "assistant",
            reply=False,
        )
        async with aclosing(conversations.post(call)) as events:
            async for _ in events:
                pass
    await wait_for_jobs(parts.database, talk)
    facts, tasks = await parts.database.read(
        lambda c: (list_facts(c, owner, limit=_MOST), list_tasks(c, owner, limit=_MOST))
    )
    changed = [
        ["add" if task.id not in before else task.state, task.title]
        for task in tasks
        if before.get(task.id) != task.state
    ]
    return [[fact.key.replace("_", " "), fact.text] for fact in facts], changed


async def wait_for_jobs(database: Database, talk: Conversation) -> None:
    """Wait until no job is left. Raises the error of a job that failed."""
    try:
        async with asyncio.timeout(_SECONDS):
            while jobs := await database.read(lambda c: open_jobs(c, talk.id)):
                for job in jobs:
                    if job.problem is not None:
                        raise HearthError(f"the job `{job.kind}` failed: {job.problem}", status=503)
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError:
        raise DeadlineError(f"the memory has not read the messages within {_SECONDS:g} seconds") from None


def _scored(line: MemoryLine, stored: list[list[str]], changed: list[list[str]], seconds: float) -> Row:
    wrong = [each for each in stored if not any(_fits(each, want) for want in [*line.facts, *line.may])]
    wrong += [
        each for each in changed if not any(_fits(each, want) for want in [*line.tasks, *line.may_tasks])
    ]
    return Row(
        id=line.id,
        category=line.category,
        text=line.text,
        answerable=bool(line.facts or line.tasks),
        answer="; ".join(": ".join(each) for each in [*stored, *changed]),
        facts=sum(any(_fits(each, want) for each in stored) for want in line.facts),
        facts_wanted=len(line.facts),
        changes=sum(any(_fits(each, want) for each in changed) for want in line.tasks),
        changes_wanted=len(line.tasks),
        stored=len(stored) + len(changed),
        wrong=[": ".join(each) for each in wrong],
        timings={"total": seconds},
    )


def _fits(stored: list[str], wanted: Wanted) -> bool:
    """Whether the key or operation matches the first pattern, and the text all others."""
    name, text = stored
    first, *terms = wanted
    return all(
        re.search(pattern, said, re.IGNORECASE | re.DOTALL) is not None
        for pattern, said in [(first.replace("_", " "), name), *((term, text) for term in terms)]
    )
