"""Task changes: how tasks read in a prompt, what mentions them, which proposals count. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gateway.memory.learning.asked import Change, is_task
from gateway.memory.learning.entailment import content, state_follows, task_follows
from gateway.memory.learning.statements import quoted_statement
from gateway.store.memory.messages import StoredMessage
from gateway.store.memory.tasks import TASK_ID, State, Task

MENTION = re.compile(rf"(?<![\w-])({TASK_ID})(?![0-9])")
MAX_CHANGES = 8
_MARKS: dict[State, str] = {"open": " ", "doing": ">", "waiting": "?", "done": "x", "cancelled": "-"}


def mentions(text: str) -> list[str]:
    """Ids of tasks and objectives that a text mentions, each once."""
    return list(dict.fromkeys(MENTION.findall(text)))


def is_named(title: str, spoken: frozenset[str]) -> bool:
    """Whether all words of a title that say something are among these stems; a single one is too few to tell."""
    words = content(title)
    return len(words) > 1 and words <= spoken


def as_lines(tasks: Sequence[Task]) -> list[str]:
    """``[x] T-20261120-03 (hybrid) Title``; checklist items are indented, a breakpoint says what it waits for."""
    lines = []
    for task in tasks:
        indent = "  " if task.level == "checklist" else ""
        kind = "" if task.level == "checklist" else f" ({task.archetype})"
        stop = f" BREAKPOINT: {task.question or 'ask the user'}" if task.breakpoint else ""
        lines.append(f"{indent}[{_MARKS[task.state]}] {task.id}{kind} {task.title}{stop}")
    return lines


def accept(
    changes: Sequence[Change], messages: Sequence[StoredMessage], known: Sequence[Task]
) -> list[tuple[Change, int]]:
    """The changes that count, each with the ``seq`` of the message that its quote comes from.

    An addition follows from a user's statement. Any other change follows from a statement that names the known task.
    """
    tasks = {task.id: task for task in known}
    accepted: list[tuple[Change, int]] = []
    for change in changes[:MAX_CHANGES]:
        adds = change.op in ("add", "add_item")
        found = quoted_statement(change.quote, messages, users_only=adds, requests=True)
        if found is None or (change.op != "add" and change.id not in tasks):
            continue
        source, said = found
        if not adds and (tasks[change.id].message or 0) >= source.seq:
            continue  # it has changed since
        if adds:
            if not is_task(change.title) or not task_follows(change.title, said):
                continue
            if change.op == "add_item" and tasks[change.id].level != "task":
                continue
        elif not state_follows(change.op, change.id, tasks[change.id].title, said):
            continue
        accepted.append((change, source.seq))
    return accepted
