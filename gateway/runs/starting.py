"""Start a run: its checklist is what the user wrote, what the title plainly asks for, or the model's."""

from __future__ import annotations

import time
from collections.abc import Sequence

import apsw
import msgspec

from gateway.base.errors import InvalidRequestError
from gateway.config.settings import TaskSettings
from gateway.runs.answers import make_items, proceed
from gateway.runs.checklist import item_of_words, items_of_lines, items_of_words
from gateway.runs.tool import Toolbox
from gateway.store.memory.runs import PlannedBy, TaskRun, add_run, items_of, new_run_id
from gateway.store.memory.tasks import Archetype, Task, get_task, save_task


def start_run(
    connection: apsw.Connection,
    limits: TaskSettings,
    tools: Toolbox,
    task: str,
    owner: str,
    steps: Sequence[str] | None,
    archetype: Archetype | None,
) -> None:
    """Raises NotFoundError, RunConflictError if the task runs already, InvalidRequestError for a step or archetype."""
    now, found = time.time(), _runnable(get_task(connection, task, owner), archetype)
    run = TaskRun(
        id=new_run_id(),
        owner=owner,
        task=task,
        state="running",
        planned="",
        max_steps=limits.max_steps,
        max_tokens=limits.max_tokens,
        max_seconds=limits.max_seconds,
        created_at=now,
        updated_at=now,
    )
    add_run(connection, run)
    planned: PlannedBy = ""
    if found.level == "objective":  # its items are tasks, which run one after the other
        planned = "user"
        if steps is not None:
            raise InvalidRequestError(f"`{task}` is an objective: it has tasks, not steps", param="steps")
    for item in items_of(connection, task, owner) if found.level == "task" else ():
        planned = "user"
        words = item_of_words(item.title, tools) if item.tool is None and not item.breakpoint else None
        made = msgspec.structs.replace(item, state="open", tool=words.tool if words else item.tool)
        save_task(connection, made)
    if steps is not None:
        planned = "user"
        make_items(connection, found, items_of_lines(steps, tools), now)
    elif not planned and (items := items_of_words(found.title, tools)):
        planned = "words"
        make_items(connection, found, items, now)
    save_task(connection, msgspec.structs.replace(found, state="doing", updated_at=now))
    proceed(connection, msgspec.structs.replace(run, planned=planned), now)


def _runnable(task: Task, archetype: Archetype | None) -> Task:
    """The task with the archetype that it is run with. Raises InvalidRequestError."""
    if task.level == "checklist":
        raise InvalidRequestError(f"`{task.id}` is an item of a checklist; run its task", param="id")
    wanted = archetype or task.archetype
    if wanted == "user":
        raise InvalidRequestError(
            f"`{task.id}` has the archetype `user`: you do it. Send `archetype: model` or `archetype: hybrid`",
            param="archetype",
        )
    return msgspec.structs.replace(task, archetype=wanted)
