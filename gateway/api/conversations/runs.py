"""/v1/tasks/{id}/run and /v1/notices: tasks that do themselves."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Annotated, Any

from msgspec import Meta, Struct

from gateway.api.http.endpoint import JSON, SSE, Endpoint
from gateway.api.parsing.fields import Body, read_body
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import Relay, StreamReply, named_events
from gateway.base.redact import without_secrets
from gateway.store.memory.runs import Breakpoint, BreakpointKind, Outcome, PlannedBy, RunState, RunView
from gateway.store.memory.tasks import Archetype, State

Line = Annotated[str, Meta(min_length=1, max_length=4000)]
Lines = Annotated[list[Line], Meta(min_length=1, max_length=12)]


class NewRun(Body, frozen=True):
    """POST …/run. ``steps``: the checklist, a line each, such as ``ask_wiki: Who made Befunge?``.

    Without them it is the task's checklist, or what its title plainly asks for, or the model writes it.
    """

    steps: Lines | None = None
    archetype: Archetype | None = None


class BreakpointAnswer(Body, frozen=True):
    """POST …/answer. ``breakpoint`` is the id of the one that is meant; by default the open one."""

    answer: Line | Lines
    breakpoint: int | None = None


class BreakpointReply(Struct, frozen=True, kw_only=True):
    """Where the run waits; ``schema`` is the JSON schema of the answer."""

    id: int
    item: str | None
    kind: BreakpointKind
    question: str
    schema: dict[str, Any]
    expires_at: float
    expired: bool


class StepReply(Struct, frozen=True, kw_only=True):
    """An item of the checklist with the outcome of its last attempt; ``result`` of a failed one is what went wrong."""

    id: str
    title: str
    state: State
    attempts: int
    outcome: Outcome | None
    result: str | None


class RunReply(Struct, frozen=True, kw_only=True):
    """A run of a task. ``planned`` says who wrote the checklist, "" before there is one."""

    task: str
    title: str
    archetype: Archetype
    state: RunState
    planned: PlannedBy
    steps: list[StepReply]
    breakpoint: BreakpointReply | None
    result: str | None
    tokens: int
    seconds: float
    created_at: float
    updated_at: float


class NoticeReply(Struct, frozen=True, kw_only=True):
    task: str
    text: str
    created_at: float


class Notices(Struct, frozen=True):
    """What the owner has not been told yet."""

    data: list[NoticeReply]


async def begin(request: ApiRequest) -> Struct:
    """Start a run of a task: it carries out its checklist, and waits at BREAKPOINTs."""
    body, _ = without_secrets(await read_body(request, NewRun))
    view = await request.services.runs.begin(request.path_id, request.owner, body.steps, body.archetype)
    return run_reply(view)


async def show(request: ApiRequest) -> Struct:
    """The newest run of a task."""
    return run_reply(await request.services.runs.view(request.path_id, request.owner))


async def events(request: ApiRequest) -> object:
    """The run as it is now, and again after each change, until it has ended."""
    services = request.services
    await services.runs.view(request.path_id, request.owner)
    recheck = partial(services.auth.authenticate, request.headers, "user")
    source = services.runs.watch(request.path_id, request.owner)
    relay: Relay[RunView] = Relay(source, services.drain, recheck=recheck)
    return StreamReply(
        relay, lambda items: named_events(items, request.id, lambda view: ("run", run_reply(view)))
    )


async def answer(request: ApiRequest) -> Struct:
    """Answer the BREAKPOINT at which a run waits; the run goes on."""
    body, _ = without_secrets(await read_body(request, BreakpointAnswer))
    runs = request.services.runs
    return run_reply(await runs.answer(request.path_id, request.owner, body.breakpoint, body.answer))


async def pause(request: ApiRequest) -> Struct:
    """Pause a run."""
    return await _moved(request, request.services.runs.pause)


async def resume(request: ApiRequest) -> Struct:
    """Go on with a paused run, or let a waiting one ask again."""
    return await _moved(request, request.services.runs.resume)


async def cancel(request: ApiRequest) -> Struct:
    """Cancel a run and its task."""
    return await _moved(request, request.services.runs.cancel)


async def notices(request: ApiRequest) -> Struct:
    """Take the notices of the caller's tasks: reminders, BREAKPOINTs, results. Each is given once."""
    found = await request.services.runs.notices(request.owner)
    return Notices(
        [NoticeReply(task=each.task, text=each.text, created_at=each.created_at) for each in found]
    )


async def _moved(request: ApiRequest, move: Callable[[str, str], Awaitable[RunView]]) -> Struct:
    return run_reply(await move(request.path_id, request.owner))


def run_reply(view: RunView) -> RunReply:
    run, waiting = view.run, view.waiting_for
    last = {step.item: step for step in view.steps}
    steps = [
        StepReply(
            id=item.id,
            title=item.title,
            state=item.state,
            attempts=sum(step.item == item.id for step in view.steps),
            outcome=last[item.id].outcome if item.id in last else None,
            result=last[item.id].result if item.id in last else None,
        )
        for item in view.items
    ]
    return RunReply(
        task=run.task,
        title=view.task.title,
        archetype=view.task.archetype,
        state=run.state,
        planned=run.planned,
        steps=steps,
        breakpoint=_breakpoint_reply(waiting) if waiting is not None else None,
        result=run.result,
        tokens=run.tokens,
        seconds=run.seconds,
        created_at=run.created_at,
        updated_at=run.updated_at,
    )


def _breakpoint_reply(found: Breakpoint) -> BreakpointReply:
    return BreakpointReply(
        id=found.id,
        item=found.item,
        kind=found.kind,
        question=found.question,
        schema=found.schema,
        expires_at=found.expires_at,
        expired=time.time() >= found.expires_at,
    )


_ONE = "/v1/tasks/{id}"
ENDPOINTS = (
    Endpoint("POST", f"{_ONE}/run", begin, "user", (JSON,), NewRun, RunReply, status=201),
    Endpoint("GET", f"{_ONE}/run", show, "user", reply=RunReply),
    Endpoint("GET", f"{_ONE}/events", events, "user", streams=SSE),
    Endpoint("POST", f"{_ONE}/answer", answer, "user", (JSON,), BreakpointAnswer, RunReply),
    Endpoint("POST", f"{_ONE}/pause", pause, "user", reply=RunReply),
    Endpoint("POST", f"{_ONE}/resume", resume, "user", reply=RunReply),
    Endpoint("POST", f"{_ONE}/cancel", cancel, "user", reply=RunReply),
    Endpoint("POST", "/v1/notices", notices, "user", reply=Notices),
)
