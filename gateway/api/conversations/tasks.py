"""/v1/tasks: the caller's objectives, tasks and checklists."""

from __future__ import annotations

import time
from datetime import date, datetime
from functools import partial
from typing import Annotated, Any

import apsw
import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from gateway.api.conversations.replies import Erased, TaskPage, TaskReply, listed, shown
from gateway.api.http.endpoint import Endpoint
from gateway.api.parsing.fields import Body, invalid
from gateway.api.parsing.paging import CURSOR, ConversationId, Listed, halves, pair
from gateway.api.services import ApiRequest
from gateway.base.redact import without_secrets
from gateway.memory.learning.objectives import split_listed
from gateway.memory.planning.budget import time_zone
from gateway.store.memory.conversations import get_conversation
from gateway.store.memory.runs import RunConflictError, end_runs, unanswered, wake_above
from gateway.store.memory.tasks import (
    Archetype,
    Level,
    NewTask,
    State,
    Task,
    add_objective,
    add_task,
    delete_task,
    get_task,
    list_tasks,
    save_task,
)

Title = Annotated[str, Meta(min_length=1, max_length=300)]
_DATES = "a date such as 2026-11-20, a month such as 2026-11, or a year"
Day = Annotated[str, Meta(pattern=r"^[0-9]{4}(-[0-9]{2}){0,2}$", description=_DATES)]


class Tool(Body, frozen=True):
    """A tool for a runner to call for a checklist item."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    arguments: dict[str, Any] = {}


class NewTaskBody(Body, frozen=True, kw_only=True):
    """POST /v1/tasks. Checklist items need ``parent``; a ``breakpoint`` asks its ``question`` first.

    ``day`` may be a month or a year: such tasks are on a day's list once they are mentioned.
    """

    title: Title
    level: Level = "task"
    parent: str | None = None
    archetype: Archetype = "user"
    day: Day | None = None
    breakpoint: bool = False
    question: Annotated[str, Meta(max_length=500)] | None = None
    tool: Tool | None = None


class TaskChange(Body, frozen=True, kw_only=True):
    title: Title | UnsetType = UNSET
    state: State | UnsetType = UNSET
    day: Day | UnsetType = UNSET
    archetype: Archetype | UnsetType = UNSET
    breakpoint: bool | UnsetType = UNSET
    question: Annotated[str, Meta(max_length=500)] | UnsetType | None = UNSET
    tool: Tool | UnsetType | None = UNSET


class TaskQuery(Listed, frozen=True, kw_only=True):
    day: (
        Annotated[str, Meta(pattern=r"^(today|[0-9]{4}(-[0-9]{2}){0,2})$", description=f"today, {_DATES}")]
        | UnsetType
    ) = UNSET
    state: State | UnsetType = UNSET
    conversation: ConversationId | UnsetType = UNSET
    before: (
        Annotated[str, Meta(pattern=r"^[0-9]{4}(-[0-9]{2}){0,2}~[^~\n]{1,100}$", description=CURSOR)]
        | UnsetType
    ) = UNSET

    @property
    def cursor(self) -> tuple[str, str] | None:
        return halves(self.before)


async def list_all(request: ApiRequest, asked: TaskQuery) -> dict[str, Any]:
    """The caller's tasks, newest day first; ``day`` is YYYY-MM-DD, YYYY-MM, YYYY or ``today``.

    ``conversation`` is one whose time zone says what day that is.
    """
    day = None
    if asked.day is not UNSET:
        day = await _today(request, asked.conversation) if asked.day == "today" else _checked_day(asked.day)
    state = None if asked.state is UNSET else asked.state
    select = partial(list_tasks, owner=request.owner, day=day, state=state)
    return await listed(request, asked, select, lambda rows: pair(rows[-1].day, rows[-1].id))


async def show(request: ApiRequest) -> Struct:
    """One task."""
    return shown(await request.read(lambda c: get_task(c, request.path_id, request.owner)))


async def create(request: ApiRequest, given: NewTaskBody) -> Struct:
    """A new objective, task or checklist item. Tasks that an objective's title lists are made with it."""
    body, redactions = without_secrets(given)
    new = NewTask(
        owner=request.owner,
        created_at=time.time(),
        redactions=redactions,
        **msgspec.to_builtins(body) | {"day": _checked_day(body.day) if body.day else await _today(request)},
    )
    if new.level == "objective":
        objective = split_listed(new.title)
        new = msgspec.structs.replace(new, title=objective.title)
        return shown(await request.write(lambda c: add_objective(c, new, objective.tasks)))
    above = new.parent or "" if new.level == "checklist" else ""
    return shown(await request.services.runs.make(lambda c: add_task(c, new), above, new.owner))


async def change(request: ApiRequest, body: TaskChange) -> Struct:
    """Change fields of a task."""
    name, owner = request.path_id, request.owner
    body, redactions = without_secrets(body)
    if body.day is not UNSET:
        _checked_day(body.day)
    given: dict[str, Any] = msgspec.to_builtins(body)

    def store(connection: apsw.Connection) -> Task:
        old = get_task(connection, name, owner)
        if old.level == "checklist" and given.get("day", old.day) != old.day:
            raise invalid("day", f"a checklist item has the day of its task; move `{old.parent}`")
        if given.get("state") == "done" and (question := unanswered(connection, old)) is not None:
            raise RunConflictError(
                f"`{old.id}` waits at a BREAKPOINT: {question}", code="open_breakpoint", param="state"
            )
        if given.get("state") in ("done", "cancelled"):
            end_runs(connection, name, owner, time.time())
        counted = old.redactions + redactions
        changes = {**given, "message": None, "updated_at": time.time(), "redactions": counted}
        task = msgspec.structs.replace(old, **changes)
        save_task(connection, task)
        return task

    if given.get("state") in ("done", "cancelled"):
        return shown(await request.services.runs.change(name, owner, store))
    if given.keys() & {"title", "archetype"}:
        return shown(await request.services.runs.make(store, name, owner))
    return shown(await request.write(store))


async def delete(request: ApiRequest) -> Struct:
    """Delete a task and everything below it."""
    name, owner = request.path_id, request.owner

    def store(connection: apsw.Connection) -> None:
        gone = get_task(connection, name, owner)
        delete_task(connection, name, owner)
        wake_above(connection, gone, time.time())

    await request.services.runs.change(name, owner, store)
    return Erased(request.path_id, True)


async def _today(request: ApiRequest, conversation: str | UnsetType = UNSET) -> str:
    name = request.services.settings.memory.time_zone
    if conversation is not UNSET:
        found = await request.read(lambda c: get_conversation(c, conversation, request.owner))
        name = found.time_zone or name
    zone = time_zone(name)
    return datetime.fromtimestamp(time.time(), zone).date().isoformat()


def _checked_day(day: str) -> str:
    try:
        date.fromisoformat((day + "-01-01")[: len("2026-11-20")])
    except ValueError:
        raise invalid("day", f"must be {_DATES}") from None
    return day


ENDPOINTS = (
    Endpoint("GET", "/v1/tasks", list_all, reply=TaskPage, query=TaskQuery),
    Endpoint("POST", "/v1/tasks", create, NewTaskBody, TaskReply, status=201),
    Endpoint("GET", "/v1/tasks/{id}", show, reply=TaskReply),
    Endpoint("PATCH", "/v1/tasks/{id}", change, TaskChange, TaskReply),
    Endpoint("DELETE", "/v1/tasks/{id}", delete, reply=Erased),
)
