"""/v1/tasks/{id}/run and /v1/notices: tasks that do themselves."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from msgspec import Meta, Struct

from gateway.api.conversations.replies import Erased, followed
from gateway.api.http.endpoint import SSE, Endpoint
from gateway.api.parsing.fields import Body
from gateway.api.parsing.paging import PagedByTime, pair
from gateway.api.services import ApiRequest
from gateway.base.errors import NotFoundError
from gateway.base.redact import without_secrets
from gateway.base.structs import view
from gateway.runs.decide import call_text
from gateway.runs.planning.items import line_of
from gateway.runs.service import FollowingSince
from gateway.store.memory.approvals import list_approvals, revoke_approval
from gateway.store.memory.notices import Notice
from gateway.store.memory.runs import BreakpointKind, Outcome, PlannedBy, RunState, RunView, list_runs
from gateway.store.memory.tasks import Archetype, State

Line = Annotated[str, Meta(min_length=1, max_length=4000)]
Lines = Annotated[list[Line], Meta(min_length=1, max_length=12)]


class NewRun(Body, frozen=True):
    """POST …/run. ``steps``: the checklist, a line each, such as ``ask_wiki: Who made Befunge?``.

    Without them it is the task's checklist, or what its title plainly asks for, or the model writes it.
    """

    steps: Lines | None = None
    archetype: Archetype | None = None


class NewSteps(Body, frozen=True):
    """POST …/edit. ``steps`` replace those that are not done."""

    steps: Lines


class StepAgain(Body, frozen=True):
    """POST …/retry. ``step`` is its number, from 1."""

    step: Annotated[int, Meta(ge=1, le=999)]


class RecordedStep(Body, frozen=True):
    """POST …/replay. ``request`` is the step's id in the request log."""

    request: Annotated[str, Meta(min_length=1, max_length=100)]


class ReplayedStep(Struct, frozen=True, kw_only=True):
    """The result of a call ``then``, and its result ``now``."""

    call: str
    then: str
    now: str


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
    """An item of the checklist with the outcome of its last attempt; ``result`` of a failed one is the error.

    ``line`` makes such a step. ``request`` is its id in the request log; "" before it has ended.
    """

    id: str
    title: str
    line: str
    state: State
    attempts: int
    outcome: Outcome | None
    result: str | None
    request: str


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


class RunPage(Struct, frozen=True):
    data: list[RunReply]
    next: str | None


class NoticeReply(Struct, frozen=True, kw_only=True):
    """``breakpoint`` is the id of the BREAKPOINT that asks."""

    task: str
    text: str
    breakpoint: int | None
    created_at: float


class ApprovalReply(Struct, frozen=True, kw_only=True):
    """``calls`` is the pattern; {{*}} in it stands for any text."""

    id: int
    calls: str
    created_at: float


class Approvals(Struct, frozen=True):
    data: list[ApprovalReply]


class Notices(Struct, frozen=True):
    """The notices that the owner has not seen yet."""

    data: list[NoticeReply]


async def begin(request: ApiRequest, body: NewRun) -> Struct:
    """Start a run of a task: it carries out its checklist, and waits at BREAKPOINTs."""
    body, _ = without_secrets(body)
    runs = request.services.runs
    return run_reply(await runs.begin(request.path_id, request.owner, body.steps, body.archetype))


async def show(request: ApiRequest) -> Struct:
    """The newest run of a task."""
    return run_reply(await request.services.runs.view(request.path_id, request.owner))


async def events(request: ApiRequest) -> object:
    """The run as it is now, and again after each change, until it has ended."""
    runs = request.services.runs
    await runs.view(request.path_id, request.owner)
    source = runs.watch(request.path_id, request.owner)
    return followed(request, source, lambda found: ("run", run_reply(found)))


async def answer(request: ApiRequest, body: BreakpointAnswer) -> Struct:
    """Answer the BREAKPOINT at which a run waits, and resume the run."""
    return await give(request, request.path_id, body)


async def give(request: ApiRequest, task: str, given: BreakpointAnswer) -> RunReply:
    body, _ = without_secrets(given)
    runs = request.services.runs
    return run_reply(await runs.answer(task, request.owner, body.breakpoint, body.answer))


async def pause(request: ApiRequest) -> Struct:
    """Pause a run."""
    return await _moved(request, request.services.runs.pause)


async def resume(request: ApiRequest) -> Struct:
    """Resume a paused run, or have a waiting one ask again."""
    return await _moved(request, request.services.runs.resume)


async def cancel(request: ApiRequest) -> Struct:
    """Cancel a run and its task."""
    return await _moved(request, request.services.runs.cancel)


async def edit(request: ApiRequest, body: NewSteps) -> Struct:
    """Replace the steps that are not done, and resume the run."""
    body, _ = without_secrets(body)
    return run_reply(await request.services.runs.edit(request.path_id, request.owner, body.steps))


async def retry(request: ApiRequest, body: StepAgain) -> Struct:
    """Do a step again, also after the end of the run."""
    return run_reply(await request.services.runs.retry(request.path_id, request.owner, body.step))


async def replay(request: ApiRequest, body: RecordedStep) -> Struct:
    """Make the call of a step that only reads again, and compare; nothing is stored."""
    step, now = await request.services.runs.replay(request.path_id, request.owner, body.request)
    return ReplayedStep(call=call_text(step.tool, step.arguments), then=step.result or "", now=now)


async def notices(request: ApiRequest) -> Struct:
    """Take the notices of the caller's tasks: reminders, BREAKPOINTs, results. Each is given once."""
    found = await request.services.runs.notices(request.owner)
    return Notices([view(NoticeReply, each) for each in found])


async def list_all(request: ApiRequest, asked: PagedByTime) -> RunPage:
    """The caller's runs, newest first."""
    found = await request.services.database.read(
        lambda c: list_runs(c, request.owner, asked.limit, asked.cursor)
    )
    more = pair(found[-1].run.created_at, found[-1].run.id) if len(found) == asked.limit else None
    return RunPage([run_reply(each) for each in found], more)


async def news(request: ApiRequest) -> object:
    """Notices as they come, and runs after each change, until the connection ends."""

    def named(item: Notice | RunView | FollowingSince) -> tuple[str, object]:
        if isinstance(item, FollowingSince):
            return "ready", item
        return ("run", run_reply(item)) if isinstance(item, RunView) else ("notice", view(NoticeReply, item))

    return followed(request, request.services.runs.news(request.owner), named)


async def approvals(request: ApiRequest) -> Struct:
    """The caller's standing approvals (`always`)."""
    found = await request.services.database.read(lambda c: list_approvals(c, request.owner))
    return Approvals([view(ApprovalReply, each, calls=call_text(each.tool, each.pattern)) for each in found])


async def revoke(request: ApiRequest) -> Struct:
    """Revoke an approval, so that such calls need approval again."""
    number = request.path_id
    if not re.fullmatch(r"[0-9]{1,15}", number):
        raise NotFoundError(f"there is no approval {number[:50]}", param="id")
    await request.services.database.write(lambda c: revoke_approval(c, request.owner, int(number)))
    return Erased(number, True)


async def _moved(request: ApiRequest, move: Callable[[str, str], Awaitable[RunView]]) -> Struct:
    return run_reply(await move(request.path_id, request.owner))


def run_reply(found: RunView) -> RunReply:
    last = {step.item: step for step in found.steps}
    steps = [
        view(
            StepReply,
            item,
            line=line_of(item),
            attempts=sum(step.item == item.id for step in found.steps),
            outcome=last[item.id].outcome if item.id in last else None,
            result=last[item.id].result if item.id in last else None,
            request=last[item.id].request if item.id in last else "",
        )
        for item in found.items
    ]
    stop = found.waiting_for
    asked = view(BreakpointReply, stop, expired=time.time() >= stop.expires_at) if stop is not None else None
    task = found.task
    return view(
        RunReply, found.run, title=task.title, archetype=task.archetype, steps=steps, breakpoint=asked
    )


_ONE = "/v1/tasks/{id}"
ENDPOINTS = (
    Endpoint("POST", f"{_ONE}/run", begin, NewRun, RunReply, status=201),
    Endpoint("GET", f"{_ONE}/run", show, reply=RunReply),
    Endpoint("GET", f"{_ONE}/events", events, streams=SSE),
    Endpoint("POST", f"{_ONE}/answer", answer, BreakpointAnswer, RunReply),
    Endpoint("POST", f"{_ONE}/edit", edit, NewSteps, RunReply),
    Endpoint("POST", f"{_ONE}/retry", retry, StepAgain, RunReply),
    Endpoint("POST", f"{_ONE}/replay", replay, RecordedStep, ReplayedStep),
    Endpoint("POST", f"{_ONE}/pause", pause, reply=RunReply),
    Endpoint("POST", f"{_ONE}/resume", resume, reply=RunReply),
    Endpoint("POST", f"{_ONE}/cancel", cancel, reply=RunReply),
    Endpoint("GET", "/v1/runs", list_all, reply=RunPage, query=PagedByTime),
    Endpoint("POST", "/v1/notices", notices, reply=Notices),
    Endpoint("GET", "/v1/notices", news, streams=SSE),
    Endpoint("GET", "/v1/approvals", approvals, reply=Approvals),
    Endpoint("DELETE", "/v1/approvals/{id}", revoke, reply=Erased),
)
