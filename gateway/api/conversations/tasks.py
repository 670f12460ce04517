"""/v1/tasks: objectives, tasks and checklists of the caller."""

from __future__ import annotations

import re
import time
from datetime import date, datetime
from typing import Annotated, Any

import apsw
import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.conversations.bodies import Erased
from gateway.api.http.endpoint import JSON, Endpoint, json_reply
from gateway.api.parsing.fields import convert, decode_object
from gateway.api.parsing.paging import Listed, halves, page, pair, query_of
from gateway.api.services import caller_of, services_of
from gateway.base.errors import InvalidRequestError
from gateway.base.redact import without_secrets
from gateway.memory.planning.budget import time_zone
from gateway.store.memory.tasks import (
    Archetype,
    Level,
    NewTask,
    State,
    Task,
    add_task,
    delete_task,
    get_task,
    list_tasks,
    save_task,
)

Title = Annotated[str, Meta(min_length=1, max_length=300)]
Day = Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]


class Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """What a runner would call for a checklist item."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    arguments: dict[str, Any] = {}


class NewTaskBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """POST /v1/tasks. A checklist item needs ``parent``; a ``breakpoint`` stops and asks its ``question``."""

    title: Title
    level: Level = "task"
    parent: str | None = None
    archetype: Archetype = "user"
    day: Day | None = None
    breakpoint: bool = False
    question: Annotated[str, Meta(max_length=500)] | None = None
    tool: Tool | None = None


class TaskChange(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """PATCH /v1/tasks/{id}: the fields that change."""

    title: Title | UnsetType = UNSET
    state: State | UnsetType = UNSET
    day: Day | UnsetType = UNSET
    archetype: Archetype | UnsetType = UNSET
    breakpoint: bool | UnsetType = UNSET
    question: Annotated[str, Meta(max_length=500)] | UnsetType | None = UNSET


class TaskQuery(Listed, frozen=True, kw_only=True):
    """GET /v1/tasks."""

    day: Annotated[str, Meta(pattern=r"^(today|[0-9]{4}-[0-9]{2}-[0-9]{2})$")] | UnsetType = UNSET
    state: State | UnsetType = UNSET
    before: Annotated[str, Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}~[^~\n]{1,100}$")] | UnsetType = UNSET


class TaskReply(Struct, frozen=True, kw_only=True):
    """A task, as its owner sees it."""

    id: str
    level: Level
    parent: str | None
    archetype: Archetype
    title: str
    state: State
    day: str
    breakpoint: bool
    tool: dict[str, Any] | None
    question: str | None
    conversation: str | None
    message: int | None
    created_at: float
    updated_at: float
    redactions: int

    @classmethod
    def of(cls, task: Task) -> TaskReply:
        """Everything but the owner."""
        return cls(**{name: getattr(task, name) for name in cls.__struct_fields__})


class TaskPage(Struct, frozen=True):
    """A page of tasks, the newest day first; ``next`` is the cursor of the page after it."""

    data: list[TaskReply]
    next: str | None


async def list_all(request: Request) -> Response:
    """The caller's tasks, the newest day first; ``day=YYYY-MM-DD`` or ``today``, ``state``, ``limit``."""
    asked, owner = query_of(request, TaskQuery), caller_of(request).owner
    day = None
    if asked.day is not UNSET:
        day = _today(request) if asked.day == "today" else _checked_day(asked.day)
    state = None if asked.state is UNSET else asked.state
    before = halves(asked.before)
    rows = await services_of(request).database.read(
        lambda c: list_tasks(c, owner, limit=asked.limit, day=day, state=state, before=before)
    )
    shown = [TaskReply.of(row) for row in rows]
    return json_reply(page(shown, asked.limit, pair(rows[-1].day, rows[-1].id) if rows else None))


async def show(request: Request) -> Response:
    """One task."""
    name, owner = request.path_params["id"], caller_of(request).owner
    return json_reply(
        TaskReply.of(await services_of(request).database.read(lambda c: get_task(c, name, owner)))
    )


async def create(request: Request) -> Response:
    """A new objective, task or checklist item."""
    body, redactions = without_secrets(convert(decode_object(await request.body()), NewTaskBody))
    new = NewTask(
        owner=caller_of(request).owner,
        level=body.level,
        parent=body.parent,
        archetype=body.archetype,
        title=body.title,
        day=_checked_day(body.day) if body.day else _today(request),
        created_at=time.time(),
        breakpoint=body.breakpoint,
        question=body.question,
        tool=msgspec.to_builtins(body.tool) if body.tool else None,
        redactions=redactions,
    )
    return json_reply(
        TaskReply.of(await services_of(request).database.write(lambda c: add_task(c, new))), 201
    )


async def change(request: Request) -> Response:
    """Change fields of a task."""
    name, owner = request.path_params["id"], caller_of(request).owner
    body, redactions = without_secrets(convert(decode_object(await request.body()), TaskChange))
    if body.day is not UNSET:
        _checked_day(body.day)
    given = {n: v for n in body.__struct_fields__ if (v := getattr(body, n)) is not UNSET}

    def store(connection: apsw.Connection) -> Task:
        old = get_task(connection, name, owner)
        if old.level == "checklist" and given.get("day", old.day) != old.day:
            raise InvalidRequestError(f"an item is of its task's day; move `{old.parent}`", param="day")
        counted = old.redactions + redactions
        task = msgspec.structs.replace(old, **given, updated_at=time.time(), redactions=counted)
        save_task(connection, task)
        return task

    return json_reply(TaskReply.of(await services_of(request).database.write(store)))


async def delete(request: Request) -> Response:
    """Delete a task with all that is below it."""
    name, owner = request.path_params["id"], caller_of(request).owner
    await services_of(request).database.write(lambda c: delete_task(c, name, owner))
    return json_reply(Erased(name, True))


def _today(request: Request) -> str:
    zone = time_zone(services_of(request).settings.memory.time_zone)
    return datetime.fromtimestamp(time.time(), zone).date().isoformat()


def _checked_day(day: str) -> str:
    try:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", day):
            return date.fromisoformat(day).isoformat()
    except ValueError:
        pass
    raise InvalidRequestError("`day` is a date such as 2026-11-20", param="day")


ENDPOINTS = (
    Endpoint("GET", "/v1/tasks", list_all, "user", reply=TaskPage, query=TaskQuery),
    Endpoint("POST", "/v1/tasks", create, "user", (JSON,), NewTaskBody, TaskReply, status=201),
    Endpoint("GET", "/v1/tasks/{id}", show, "user", reply=TaskReply),
    Endpoint("PATCH", "/v1/tasks/{id}", change, "user", (JSON,), TaskChange, TaskReply),
    Endpoint("DELETE", "/v1/tasks/{id}", delete, "user", reply=Erased),
)
