"""SQL of tasks, on three levels: objective, task, checklist item.

Ids contain the day that a task was made for, or its month or year: ``T-20261120-03``, ``O-202611-01``, ``O-2026-01``.
``T-20261120-03.c2`` is the second item of a checklist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import InvalidRequestError
from gateway.store.request_log import delete_records
from gateway.store.rows import as_json, insert, select, select_existing, update

Level = Literal["objective", "task", "checklist"]
Archetype = Literal["user", "model", "hybrid"]
State = Literal["open", "doing", "waiting", "done", "cancelled"]

# The level of a parent.
_PARENTS: dict[Level, Level | None] = {"objective": None, "task": "objective", "checklist": "task"}
TASK_ID = r"[OT]-[0-9]{4}(?:[0-9]{2}){0,2}-[0-9]{2}"
# Lists show an item after its task.
_TOP = "iif(level = 'checklist', parent, id)"
# Tasks that a message's words are compared with.
_MOST_CONSIDERED = 200
_LISTED = "instr(days, json_quote({})) > 0"
_MOST_A_DAY = 99
_MOST_ITEMS = 999


class NewTask(Struct, frozen=True, kw_only=True):
    """A task to create. ``day`` is YYYY-MM-DD, YYYY-MM or YYYY; an item has its task's day.

    ``days`` are other days on whose list it is, because it was mentioned then. ``tool`` is ``{"name", "arguments"}``,
    for a runner to call. ``message`` (``seq``) caused the last change.
    """

    owner: str
    level: Level
    parent: str | None = None
    archetype: Archetype = "user"
    title: str
    day: str
    created_at: float  # Unix seconds
    breakpoint: bool = False
    tool: dict[str, Any] | None = None
    question: str | None = None
    conversation: str | None = None
    message: int | None = None
    redactions: int = 0  # secrets redacted from its texts
    days: list[str] = []


class Task(NewTask, frozen=True, kw_only=True):
    id: str
    state: State
    updated_at: float


def add_task(connection: apsw.Connection, new: NewTask) -> Task:
    """Create a task with the next free id. Raises InvalidRequestError (wrong parent, too many), NotFoundError."""
    wanted = _PARENTS[new.level]
    fields = msgspec.structs.asdict(new)
    if new.parent is not None:
        parent = get_task(connection, new.parent, new.owner)
        if parent.level != wanted:
            raise InvalidRequestError(
                f"a {new.level} cannot belong to the {parent.level} `{parent.id}`", param="parent"
            )
        if new.level == "checklist":
            fields["day"] = parent.day
    elif new.level == "checklist":
        raise InvalidRequestError("a checklist item belongs to a task", param="parent")
    task = Task(**fields, id=_next_id(connection, new), state="open", updated_at=new.created_at)
    insert(connection, "tasks", task)
    return task


def add_objective(connection: apsw.Connection, new: NewTask, titles: Sequence[str]) -> Task:
    """Create an objective and its tasks. Raises as :func:`add_task`."""
    objective = add_task(connection, new)
    for title in titles:
        add_task(
            connection,
            msgspec.structs.replace(new, level="task", parent=objective.id, title=title, days=[]),
        )
    return objective


def get_task(connection: apsw.Connection, task: str, owner: str) -> Task:
    """The owner's task of that id. Raises NotFoundError."""
    missing = f"there is no task `{task[:100]}`"
    return select_existing(connection, Task, "tasks WHERE owner = ? AND id = ?", (owner, task), missing)


def save_task(connection: apsw.Connection, task: Task) -> None:
    """Update a task, and the day of its checklist's items."""
    update(connection, "tasks", task, "owner", "id")
    connection.execute(
        "UPDATE tasks SET day = ? WHERE owner = ? AND parent = ? AND level = 'checklist'",
        (task.day, task.owner, task.id),
    )


def delete_task(connection: apsw.Connection, task: str, owner: str) -> None:
    """Delete a task and everything below it. Raises NotFoundError."""
    if get_task(connection, task, owner).level != "checklist":  # the log has what its steps read and wrote
        below = "SELECT id FROM tasks WHERE owner = ?1 AND (id = ?2 OR parent = ?2)"
        delete_records(connection, f"owner = ?1 AND details ->> '$.task' IN ({below})", (owner, task))
    connection.execute("DELETE FROM tasks WHERE owner = ? AND id = ?", (owner, task))


def tasks_of_day(connection: apsw.Connection, owner: str, day: str) -> list[Task]:
    """The day's list, finished ones included: its tasks, tasks and objectives mentioned then, and what is below them.

    Objectives of the day that were not mentioned are no part of it, only their tasks.
    """
    tops = (
        f"SELECT id FROM tasks WHERE owner = ?1 AND (level = 'task' AND day = ?2 OR {_LISTED.format('?2')})"
    )
    where = f"owner = ?1 AND (id IN ({tops}) OR parent IN ({tops}))"
    return _in_order(select(connection, Task, f"tasks WHERE {where}", (owner, day)))


def open_tasks_besides(connection: apsw.Connection, owner: str, day: str) -> list[Task]:
    """The owner's newest unfinished tasks and objectives of other days, at most :data:`_MOST_CONSIDERED`."""
    return select(
        connection,
        Task,
        "tasks WHERE owner = ? AND level <> 'checklist' AND state NOT IN ('done', 'cancelled') AND day <> ? "
        "ORDER BY day DESC, id DESC LIMIT ?",
        (owner, day, _MOST_CONSIDERED),
    )


def tasks_named(connection: apsw.Connection, owner: str, names: Sequence[str]) -> list[Task]:
    """The owner's tasks of these ids, each with its direct children."""
    where = "owner = ?1 AND (id IN (SELECT value FROM json_each(?2)) OR parent IN (SELECT value FROM json_each(?2)))"
    return _in_order(select(connection, Task, f"tasks WHERE {where}", (owner, as_json(names))))


def tasks_of_message(connection: apsw.Connection, owner: str, message: int) -> list[Task]:
    """The tasks whose last change a message (``seq``) caused."""
    return select(connection, Task, "tasks WHERE owner = ? AND message = ?", (owner, message))


def list_tasks(
    connection: apsw.Connection,
    owner: str,
    *,
    limit: int,
    day: str | None = None,
    state: State | None = None,
    before: tuple[str, str] | None = None,
) -> list[Task]:
    """The owner's tasks of all levels, newest day first, items after their task in the order of their numbers.

    The cursor ``before`` has the day and id of the last one.
    """
    seen_day, seen = before or (None, "")
    return select(
        connection,
        Task,
        f"tasks WHERE owner = :owner AND (:day IS NULL OR day = :day OR {_TOP} IN "
        f"(SELECT id FROM tasks WHERE owner = :owner AND {_LISTED.format(':day')})) "
        "AND (:state IS NULL OR state = :state) AND (:seen_day IS NULL OR day < :seen_day OR day = :seen_day "
        f"AND ({_TOP}, length(id), id) > (:top, :length, :seen)) "
        f"ORDER BY day DESC, {_TOP}, length(id), id LIMIT :limit",
        {
            "owner": owner,
            "day": day,
            "state": state,
            "seen_day": seen_day,
            "top": seen.partition(".c")[0],
            "length": len(seen),
            "seen": seen,
            "limit": limit,
        },
    )


def _next_id(connection: apsw.Connection, new: NewTask) -> str:
    if new.level == "checklist":
        count = connection.execute(
            "SELECT coalesce(max(cast(substr(id, length(parent) + 3) AS INTEGER)), 0) FROM tasks "
            "WHERE owner = ? AND parent = ?",
            (new.owner, new.parent),
        ).get
        if count >= _MOST_ITEMS:
            raise InvalidRequestError(
                f"the checklist of `{new.parent}` has {count} items already", param="parent"
            )
        return f"{new.parent}.c{count + 1}"
    start = f"{'O' if new.level == 'objective' else 'T'}-{new.day.replace('-', '')}-"
    last = connection.execute(
        "SELECT max(id) FROM tasks WHERE owner = ? AND id >= ? AND id < ? AND level = ?",
        (new.owner, start, f"{start}~", new.level),
    ).get
    number = int(last[len(start) :]) + 1 if last else 1
    if number > _MOST_A_DAY:
        raise InvalidRequestError(f"{new.day} has {_MOST_A_DAY} {new.level}s already", param="day")
    return f"{start}{number:02}"


def _in_order(tasks: Sequence[Task]) -> list[Task]:
    """By id, checklist items by their number behind their task."""

    def place(task: Task) -> tuple[str, int]:
        above, _, number = task.id.partition(".c")
        return above, int(number or 0)

    return sorted(tasks, key=place)
