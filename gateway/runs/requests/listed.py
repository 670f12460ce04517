"""The tasks that words of a chat name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import apsw

from gateway.base.redact import redact
from gateway.memory.learning.entailment import content
from gateway.runs.planning.reminders import in_one_language
from gateway.store.memory.runs import end_runs, items_of
from gateway.store.memory.tasks import Task, delete_task

ENDED = ("done", "cancelled")


def title_of(text: str) -> str:
    clean, _ = redact(text.strip())
    return (clean[:1].upper() + clean[1:])[:300]


def is_same(task: Task, title: str) -> bool:
    unfinished = task.level == "task" and task.state not in ENDED
    return unfinished and (content(task.title) or task.title) == (content(title) or title)


def is_of(task: Task, title: str) -> bool:
    """Whether an unfinished task is of these words, or of these and its time ("Buy milk at 6 pm")."""
    unfinished, words = task.level == "task" and task.state not in ENDED, content(title)
    return is_same(task, title) or (unfinished and bool(words) and words < content(task.title))


def tasks_meant(tasks: Sequence[Task], what: str) -> list[Task]:
    """The tasks that words name: those with the most of them; several if they have as many."""
    words = content(in_one_language(what))
    shares = []
    for task in tasks:
        own = content(in_one_language(task.title))
        both = len(own & words)
        if both and (both == len(words) or both == len(own) or 2 * both > max(len(own), len(words))):
            shares.append((2 * both / (len(own) + len(words)), task))
    best = max((share for share, _ in shares), default=0.0)
    return [task for share, task in shares if share == best]


def has_reminder(connection: apsw.Connection, task: Task) -> bool:
    return bool(_reminding(connection, task))


def reminder_time(connection: apsw.Connection, task: Task, zone: Any) -> datetime | None:
    """When the user is reminded of a task, if that is still to come."""
    for item in _reminding(connection, task):
        assert item.tool
        return datetime.fromisoformat(item.tool["arguments"]["time"]).astimezone(zone)
    return None


def withdraw_reminder(connection: apsw.Connection, task: Task) -> None:
    """End what runs for a task, and delete the items that would remind of it."""
    end_runs(connection, task.id, task.owner, time.time())
    for item in _reminding(connection, task):
        delete_task(connection, item.id, task.owner)


def _reminding(connection: apsw.Connection, task: Task) -> list[Task]:
    return [
        item
        for item in items_of(connection, task.id, task.owner)
        if item.tool and item.tool["name"] == "remind_at" and item.state not in ENDED
    ]
