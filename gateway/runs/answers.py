"""Answers to BREAKPOINTs: their check, and what they change, in one transaction with the job that goes on."""

from __future__ import annotations

import time
from typing import Any

import apsw
import msgspec

from gateway.base.errors import InvalidRequestError
from gateway.runs.planning.checklist import items_of_lines, lines_in
from gateway.runs.planning.items import MAX_TITLE, PlannedItem
from gateway.runs.tool import Toolbox
from gateway.store.memory.approvals import Pattern, add_approval
from gateway.store.memory.jobs import add_job, make_due
from gateway.store.memory.runs import (
    Breakpoint,
    Intent,
    RunConflictError,
    RunView,
    TaskRun,
    answer_breakpoint,
    begin_step,
    end_runs,
    end_step,
    items_of,
    run_of,
    save_run,
    set_state,
)
from gateway.store.memory.tasks import Level, NewTask, Task, add_task, delete_task

Answer = str | list[str]


def give_answer(
    connection: apsw.Connection,
    task: str,
    owner: str,
    number: int | None,
    value: Answer,
    tools: Toolbox,
    request: str,
) -> TaskRun:
    """Answer the task's open BREAKPOINT, or the one with that id. A step that it ends is ``request`` in the log.

    Raises NotFoundError (no run of this owner), RunConflictError (none open, answered already, expired),
    InvalidRequestError (not a possible answer).
    """
    view, now = run_of(connection, task, owner), time.time()
    found = _open(view, number, now)
    if isinstance(value, str) and view.task.level == "objective":
        value = value.replace(";", "\n")  # several tasks in one line, as on IRC
    value = checked_answer(found, value, tools)
    answer_breakpoint(connection, found, value, now)
    _apply(connection, view, found, value, tools, now, request)
    return run_of(connection, task, owner).run


def checked_answer(found: Breakpoint, value: Answer, tools: Toolbox) -> Answer:
    """The answer, in the case of the choice that it is. Raises InvalidRequestError that names what is possible."""
    schemas: list[dict[str, Any]] = found.schema.get("anyOf", [found.schema])
    for schema in schemas:
        if isinstance(value, str) and "enum" in schema and value.strip().lower() in schema["enum"]:
            return value.strip().lower()
        if isinstance(value, str) and schema.get("type") == "string" and value.strip():
            if len(value) > schema["maxLength"]:
                raise InvalidRequestError(
                    f"`answer` has more than {schema['maxLength']} characters", param="answer"
                )
            return value
        if schema.get("type") == "array":
            return lines_in(value, tools) if isinstance(value, str) else value
    possible = " or ".join(
        ", ".join(schema["enum"]) if "enum" in schema else "a text" if schema["type"] == "string" else "steps"
        for schema in schemas
    )
    raise InvalidRequestError(f"`answer` is {str(value)[:100]!r}; possible here: {possible}", param="answer")


def _open(view: RunView, number: int | None, now: float) -> Breakpoint:
    found = view.waiting_for
    if number is not None:
        found = next((each for each in view.breakpoints if each.id == number), None)
    if found is None:
        raise RunConflictError(f"`{view.task.id}` has no such open BREAKPOINT", code="no_breakpoint")
    if found.answered_at is not None:
        raise RunConflictError(
            f"BREAKPOINT {found.id} was answered already{_instead(view)}", code="already_answered"
        )
    if not found.open:
        raise RunConflictError(f"BREAKPOINT {found.id} is withdrawn{_instead(view)}", code="expired")
    if now >= found.expires_at:
        raise RunConflictError(
            f"BREAKPOINT {found.id} has expired; `hearth tasks resume {view.task.id}` asks again",
            code="expired",
        )
    return found


def _instead(view: RunView) -> str:
    return f"; BREAKPOINT {later.id} waits now" if (later := view.waiting_for) else ""


def _apply(
    connection: apsw.Connection,
    view: RunView,
    found: Breakpoint,
    value: Answer,
    tools: Toolbox,
    now: float,
    request: str,
) -> None:
    run, item = view.run, next((each for each in view.items if each.id == found.item), None)
    if value == "cancel" and found.kind != "question":
        end_runs(connection, run.task, run.owner, now)
        return
    match found.kind:
        case "checklist" if view.task.level == "objective":
            lines = value if isinstance(value, list) else [value]
            for line in lines:
                _add_below(connection, view.task, "task", now, title=line[:MAX_TITLE])
        case "checklist" | "confirm" if isinstance(value, list):
            make_items(connection, view.task, items_of_lines(value, tools), now)
            run = msgspec.structs.replace(run, planned="user")
        case "limit":
            run = msgspec.structs.replace(
                run,
                max_steps=2 * run.max_steps,
                max_tokens=2 * run.max_tokens,
                max_seconds=2 * run.max_seconds,
            )
        case "question" if item is not None and item.tool is None:
            intent = Intent(item=item.id, tool="", arguments={"question": found.question}, hash="")
            step = begin_step(connection, run.id, intent, now)
            end_step(connection, step, "answered", str(value), now, request=request)
            set_state(connection, item, "done", now)
        case "happened":
            [step] = [each.seq for each in view.steps if each.outcome is None]
            happened = value == "yes"
            text = "it happened" if happened else "it did not happen"
            end_step(connection, step, "answered" if happened else "failed", text, now, request=request)
            if item is not None:
                set_state(connection, item, "done" if happened else "open", now)
        case "approval" if found.pattern is not None and item is not None and value == "always":
            add_approval(connection, run.owner, msgspec.convert(found.pattern, Pattern), now)
            set_state(connection, item, "open", now)
        case _ if item is not None and value == "skip":
            set_state(connection, item, "cancelled", now)
        case _ if item is not None:
            set_state(connection, item, "open", now)
    proceed(connection, run, now)


def proceed(connection: apsw.Connection, run: TaskRun, now: float) -> None:
    """Let the run go on, with the job that does it."""
    save_run(connection, msgspec.structs.replace(run, state="running"), "doing", now)
    add_job(connection, "run", run.id, now=now)
    make_due(connection, "run", run.id)


def make_items(connection: apsw.Connection, task: Task, items: list[PlannedItem], now: float) -> None:
    """Replace the items of the checklist that are not done by ``items``."""
    for old in items_of(connection, task.id, task.owner):
        if old.state != "done":
            delete_task(connection, old.id, task.owner)
    for item in items:
        asks = {"breakpoint": item.asks, "question": item.title if item.asks else None}
        _add_below(connection, task, "checklist", now, title=item.title, tool=item.tool, **asks)


def _add_below(connection: apsw.Connection, task: Task, level: Level, now: float, **fields: Any) -> None:
    of_task = {"owner": task.owner, "parent": task.id, "archetype": task.archetype, "day": task.day}
    add_task(connection, NewTask(**of_task, level=level, created_at=now, **fields))  # type: ignore[arg-type]
