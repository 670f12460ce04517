"""Start a run: its checklist is the user's own, the title's plain request, or what the model picks of it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import uuid4

import apsw
import msgspec

from gateway.base.errors import InvalidRequestError
from gateway.config.settings import TaskSettings
from gateway.runs.answers import make_items, proceed
from gateway.runs.planning.checklist import items_of_lines
from gateway.runs.planning.known import Known
from gateway.runs.planning.words import item_of_words, items_of_words
from gateway.runs.tool import Toolbox
from gateway.store.memory.runs import (
    PlannedBy,
    TaskRun,
    add_run,
    delete_run,
    draft_of,
    items_of,
    save_run,
    set_state,
)
from gateway.store.memory.tasks import Archetype, Task, delete_task, get_task, save_task


@dataclass(frozen=True)
class Starter:
    """Starts runs within ``limits``, with checklists of ``tools`` and what is ``known`` of the projects."""

    limits: TaskSettings
    tools: Toolbox
    known: Known

    def prepare(self, connection: apsw.Connection, task: Task) -> None:
        """Have the checklist of a new task that does itself written; nothing is carried out before the task is run.

        The rules' checklist waits in a paused run; a run has the model's written, and asks whether it is right.
        Tasks of an objective get theirs when it is their turn.
        """
        itself = task.level == "task" and task.parent is None and task.archetype != "user"
        if itself and task.state == "open" and not items_of(connection, task.id, task.owner):
            with contextlib.suppress(InvalidRequestError):  # such as a time that is past: running it says so
                self.start(connection, task.id, task.owner, None, None, prepare=True)

    def start(
        self,
        connection: apsw.Connection,
        task: str,
        owner: str,
        steps: Sequence[str] | None,
        archetype: Archetype | None,
        *,
        prepare: bool = False,
    ) -> None:
        """Raises NotFoundError, RunConflictError if the task runs already, InvalidRequestError for a step or archetype.

        With ``prepare`` a run that has its checklist stops there.
        """
        now, given = time.time(), get_task(connection, task, owner)
        found = _runnable(given, archetype)
        draft = draft_of(connection, task, owner)
        if draft is not None and steps is None and found.archetype == given.archetype:
            if draft.state == "paused":
                proceed(connection, draft, now)
            return
        drop_draft(connection, task, owner)
        if steps is not None:
            check_has_steps(found)
        own = items_of(connection, task, owner) if found.level == "task" else []
        planned: PlannedBy = "user"
        made = items_of_lines(steps, self.tools) if steps is not None else []
        if found.level == "task" and not own and steps is None:
            made = items_of_words(found.title, self.tools, self.known(found.title))
            planned = "words" if made else ""
        run = TaskRun(
            id=str(uuid4()),
            owner=owner,
            task=task,
            state="paused" if prepare and planned else "running",
            planned=planned,
            max_steps=self.limits.max_steps,
            max_tokens=self.limits.max_tokens,
            max_seconds=self.limits.max_seconds,
            created_at=now,
            updated_at=now,
        )
        add_run(connection, run)
        for item in own:
            words = (
                item_of_words(item.title, self.tools) if item.tool is None and not item.breakpoint else None
            )
            again = msgspec.structs.replace(item, state="open", tool=words.tool if words else item.tool)
            save_task(connection, again)
        if made:
            make_items(connection, found, made, now)
        save_task(connection, msgspec.structs.replace(found, updated_at=now))
        if run.state == "paused":
            save_run(connection, run, "open", now)
        else:
            proceed(connection, run, now)


def drop_draft(connection: apsw.Connection, task: str, owner: str) -> None:
    """Delete the checklist of a task of which nothing was done or answered, unless the user wrote it."""
    if (draft := draft_of(connection, task, owner)) is not None:
        delete_run(connection, draft, time.time())
        set_state(connection, get_task(connection, task, owner), "open", time.time())
        for item in items_of(connection, task, owner):
            delete_task(connection, item.id, owner)


def check_has_steps(task: Task) -> None:
    """Raises InvalidRequestError for an objective, whose items are tasks that run one after the other."""
    if task.level == "objective":
        raise InvalidRequestError(f"`{task.id}` is an objective: it has tasks, not steps", param="steps")


def _runnable(task: Task, archetype: Archetype | None) -> Task:
    """The task with the archetype that it is run with. Raises InvalidRequestError."""
    if task.level == "checklist":
        raise InvalidRequestError(f"`{task.id}` is an item of a checklist; run its task", param="id")
    wanted = archetype or task.archetype
    if wanted == "user":
        raise InvalidRequestError(
            f"`{task.id}` has the archetype `user`: you do it. Send `archetype: model` or `archetype: hybrid` "
            f"(`hearth tasks run {task.id} --archetype model`)",
            param="archetype",
        )
    return msgspec.structs.replace(task, archetype=wanted)
