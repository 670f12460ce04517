"""SQL of runs: what was done for a task's checklist, and the BREAKPOINTs where a run waits.

A step's row is inserted before its effect and gets its outcome after it, each in a transaction of its own. So a row
without an outcome may have had its effect.
"""

from __future__ import annotations

from typing import Any, Literal

import apsw
import msgspec
from msgspec import Struct

from gateway.base.errors import HearthError, NotFoundError
from gateway.store.memory.approvals import Approval, list_approvals
from gateway.store.memory.jobs import add_job
from gateway.store.memory.notices import breakpoint_source
from gateway.store.memory.tasks import State, Task, get_task, save_task
from gateway.store.rows import exists, insert, newest, select, select_existing, select_one, update

RunState = Literal["running", "waiting", "paused", "done", "cancelled"]
PlannedBy = Literal["", "user", "words", "model"]
Outcome = Literal["done", "failed", "answered"]
# Why a run waits: the item's own question, an approval, an effect that may have happened, a checklist that is missing
# or to be confirmed, a limit, a repetition, a failed step.
BreakpointKind = Literal[
    "question", "approval", "happened", "checklist", "confirm", "limit", "repeat", "failed"
]

_OPEN_RUN = "state IN ('running', 'waiting', 'paused')"
_UNANSWERED = "answered_at IS NULL AND closed_at IS NULL"


class RunConflictError(HearthError, status=409, code="run_conflict"):
    """The run's state does not allow this."""


class TaskRun(Struct, frozen=True, kw_only=True):
    """One execution of a task. ``planned`` says who wrote the checklist, "" before there is one."""

    id: str
    owner: str
    task: str
    state: RunState
    planned: PlannedBy
    max_steps: int
    max_tokens: int
    max_seconds: float
    tokens: int = 0
    seconds: float = 0.0
    result: str | None = None
    created_at: float
    updated_at: float


class Intent(Struct, frozen=True, kw_only=True):
    """The next action. ``tool`` is "" for a question to the model; an approval binds to ``hash``."""

    item: str
    tool: str
    arguments: dict[str, Any]
    hash: str


class RunStep(Intent, frozen=True, kw_only=True):
    seq: int
    run: str
    outcome: Outcome | None
    result: str | None
    tokens: int
    seconds: float
    request: str = ""  # its id in the request log
    began_at: float
    ended_at: float | None


class NewBreakpoint(Struct, frozen=True, kw_only=True):
    """A question to the owner; ``schema`` is the JSON schema of its answer, ``pattern`` what `always` approves."""

    item: str | None
    kind: BreakpointKind
    question: str
    schema: dict[str, Any]
    hash: str = ""
    pattern: dict[str, Any] | None = None  # a Pattern

    @property
    def choices(self) -> list[str]:
        """The words that are possible answers."""
        schemas = self.schema.get("anyOf", [self.schema])
        return [choice for each in schemas for choice in each.get("enum", ())]


class Breakpoint(NewBreakpoint, frozen=True, kw_only=True):
    id: int
    owner: str
    run: str
    created_at: float
    expires_at: float
    answer: dict[str, Any] | None = None  # {"value": …}
    answered_at: float | None = None
    closed_at: float | None = None

    @property
    def open(self) -> bool:
        return self.answered_at is None and self.closed_at is None


class RunView(Struct, frozen=True, kw_only=True):
    """A run with its task, the task's items in order, its steps and BREAKPOINTs, oldest first."""

    run: TaskRun
    task: Task
    items: list[Task]
    steps: list[RunStep]
    breakpoints: list[Breakpoint]
    approvals: list[Approval] = []

    @property
    def waiting_for(self) -> Breakpoint | None:
        return next((each for each in self.breakpoints if each.open), None)


def add_run(connection: apsw.Connection, run: TaskRun) -> None:
    """Raises RunConflictError if the task has a run that has not ended."""
    if exists(connection, f"runs WHERE owner = ? AND task = ? AND {_OPEN_RUN}", (run.owner, run.task)):
        raise RunConflictError(f"`{run.task}` runs already; `resume` continues a run that waits or is paused")
    insert(connection, "runs", run)


def any_run(connection: apsw.Connection, run: str) -> RunView | None:
    """The run of that id, of any owner; None if it was deleted."""
    found = select_one(connection, TaskRun, "runs WHERE id = ?", (run,))
    return _view(connection, found) if found is not None else None


def run_of(connection: apsw.Connection, task: str, owner: str) -> RunView:
    """The task's newest run. Raises NotFoundError."""
    get_task(connection, task, owner)
    source = "runs WHERE owner = ? AND task = ? ORDER BY created_at DESC, id LIMIT 1"
    missing = f"`{task}` has no run; `hearth tasks run {task}` starts one"
    return _view(connection, select_existing(connection, TaskRun, source, (owner, task), missing))


def step_recorded_as(
    connection: apsw.Connection, task: str, owner: str, request: str
) -> tuple[RunView, RunStep]:
    """The step of a task with that id in the request log. Raises NotFoundError."""
    runs = "(SELECT id FROM runs WHERE owner = ? AND task = ?)"
    step = select_one(
        connection, RunStep, f"run_steps WHERE request = ? AND run IN {runs}", (request, owner, task)
    )
    view = any_run(connection, step.run) if step is not None else None
    if step is None or view is None:
        raise NotFoundError(f"`{task}` has no step `{request[:100]}`", param="request")
    return view, step


def list_runs(
    connection: apsw.Connection, owner: str, limit: int, before: tuple[float, str] | None = None
) -> list[RunView]:
    """The owner's runs, newest first. The cursor ``before`` has the time and id of the last one."""
    found = newest(connection, TaskRun, "runs WHERE owner = ?", (owner,), "created_at, id", limit, before)
    return [_view(connection, run) for run in found]


def items_of(connection: apsw.Connection, task: str, owner: str) -> list[Task]:
    """The checklist of a task, or the tasks of an objective, in order."""
    source = "tasks WHERE owner = ? AND parent = ? ORDER BY length(id), id"
    return select(connection, Task, source, (owner, task))


def save_run(connection: apsw.Connection, run: TaskRun, state: State, now: float) -> None:
    """Update a run, and the state of its task where that differs."""
    update(connection, "runs", msgspec.structs.replace(run, updated_at=now), "id")
    task = get_task(connection, run.task, run.owner)
    set_state(connection, task, state, now)
    if run.state in ("done", "cancelled"):
        wake_above(connection, task, now)


def draft_of(connection: apsw.Connection, task: str, owner: str) -> TaskRun | None:
    """The run of a task that only has a checklist, or waits for one, and none that the user wrote."""
    begun = (
        "EXISTS (SELECT 1 FROM run_steps WHERE run = runs.id) OR "
        "EXISTS (SELECT 1 FROM breakpoints WHERE run = runs.id AND answered_at IS NOT NULL)"
    )
    source = f"runs WHERE owner = ? AND task = ? AND {_OPEN_RUN} AND planned <> 'user' AND NOT ({begun})"
    return select_one(connection, TaskRun, source, (owner, task))


def delete_run(connection: apsw.Connection, run: TaskRun, now: float) -> None:
    """Delete a run, with the notice of its BREAKPOINT."""
    close_breakpoints(connection, run.id, now)
    connection.execute("DELETE FROM runs WHERE id = ?", (run.id,))


def open_runs(connection: apsw.Connection, task: str, owner: str) -> list[TaskRun]:
    """The runs of a task that have not ended: its own, then those of the tasks below it."""
    below = "SELECT id FROM tasks WHERE owner = ?1 AND parent = ?2"
    source = f"runs WHERE owner = ?1 AND (task = ?2 OR task IN ({below})) AND {_OPEN_RUN}"
    return select(connection, TaskRun, f"{source} ORDER BY task <> ?2, task", (owner, task))


def end_runs(connection: apsw.Connection, task: str, owner: str, now: float) -> list[TaskRun]:
    """Cancel :func:`open_runs`, the objective's before its tasks': the end of one of those starts the next."""
    found = open_runs(connection, task, owner)
    for run in found:
        close_breakpoints(connection, run.id, now)
        save_run(connection, msgspec.structs.replace(run, state="cancelled"), "cancelled", now)
    return found


def wake_above(connection: apsw.Connection, task: Task, now: float) -> None:
    """Let the objective of a task that has ended or is deleted go on, if its run does."""
    running = "runs WHERE owner = ? AND task = ? AND state = 'running'"
    for above in select(connection, TaskRun, running, (task.owner, task.parent)):
        add_job(connection, "run", above.id, now=now)


def set_state(connection: apsw.Connection, task: Task, state: State, now: float) -> None:
    """Set the state of a task or an item where it differs."""
    if task.state != state:
        save_task(connection, msgspec.structs.replace(task, state=state, updated_at=now))


def set_item_state(connection: apsw.Connection, run: TaskRun, item: str, state: State, now: float) -> None:
    """:func:`set_state` for an item of a run, which the user may have deleted meanwhile."""
    found = select_one(connection, Task, "tasks WHERE owner = ? AND id = ?", (run.owner, item))
    if found is not None:
        set_state(connection, found, state, now)


def begin_step(connection: apsw.Connection, run: str, intent: Intent, now: float) -> int:
    """Store what is about to be done; returns its ``seq``."""
    return insert(connection, "run_steps", intent, run=run, tokens=0, seconds=0.0, began_at=now)


def end_step(
    connection: apsw.Connection,
    seq: int,
    outcome: Outcome,
    result: str,
    now: float,
    *,
    tokens: int = 0,
    seconds: float = 0.0,
    request: str = "",
) -> None:
    """Store the outcome of a step that has none, and count its tokens and seconds. Raises RunConflictError."""
    connection.execute(
        "UPDATE run_steps SET outcome = ?, result = ?, tokens = ?, seconds = ?, request = ?, ended_at = ? "
        "WHERE seq = ? AND outcome IS NULL",
        (outcome, result, tokens, seconds, request, now, seq),
    )
    if not connection.changes():
        raise RunConflictError("the step has ended already, or its run was deleted")
    connection.execute(
        "UPDATE runs SET tokens = tokens + ?, seconds = seconds + ? WHERE id = "
        "(SELECT run FROM run_steps WHERE seq = ?)",
        (tokens, seconds, seq),
    )


def add_breakpoint(
    connection: apsw.Connection, run: TaskRun, new: NewBreakpoint, *, now: float, expires_at: float
) -> int:
    """Store a BREAKPOINT; returns its id."""
    more = {"owner": run.owner, "run": run.id, "created_at": now, "expires_at": expires_at}
    return insert(connection, "breakpoints", new, **more)


def answer_breakpoint(connection: apsw.Connection, found: Breakpoint, value: object, now: float) -> None:
    """Store the answer to a BREAKPOINT, and mark its notice as shown."""
    connection.execute(
        "UPDATE notices SET shown_at = ? WHERE source = ? AND shown_at IS NULL",
        (now, breakpoint_source(found.id)),
    )
    connection.execute(
        "UPDATE breakpoints SET answer = ?, answered_at = ? WHERE id = ?",
        (msgspec.json.encode({"value": value}).decode(), now, found.id),
    )


def close_breakpoints(connection: apsw.Connection, run: str, now: float) -> None:
    """Withdraw the open BREAKPOINT of a run, with its notice."""
    told = f"SELECT 'breakpoint ' || id FROM breakpoints WHERE run = ? AND {_UNANSWERED}"
    connection.execute(
        f"UPDATE notices SET shown_at = ? WHERE shown_at IS NULL AND source IN ({told})", (now, run)
    )
    connection.execute(f"UPDATE breakpoints SET closed_at = ? WHERE run = ? AND {_UNANSWERED}", (now, run))


def unanswered(connection: apsw.Connection, task: Task) -> str | None:
    """The question of a BREAKPOINT that keeps a task or an item from being done; None if there is none.

    A task also waits for the items of its checklist that are BREAKPOINTs themselves.
    """
    top = task.parent if task.level == "checklist" else task.id
    found: str | None = connection.execute(
        "SELECT question FROM breakpoints JOIN runs ON runs.id = breakpoints.run WHERE runs.owner = ?1 "
        f"AND task = ?2 AND (item = ?3 OR ?2 = ?3) AND {_UNANSWERED} "
        "UNION ALL SELECT coalesce(question, title) FROM tasks WHERE owner = ?1 AND parent = ?3 "
        "AND level = 'checklist' AND breakpoint AND state NOT IN ('done', 'cancelled') LIMIT 1",
        (task.owner, top, task.id),
    ).get
    return found


def _view(connection: apsw.Connection, run: TaskRun) -> RunView:
    return RunView(
        run=run,
        task=get_task(connection, run.task, run.owner),
        items=items_of(connection, run.task, run.owner),
        steps=select(connection, RunStep, "run_steps WHERE run = ? ORDER BY seq", (run.id,)),
        breakpoints=select(connection, Breakpoint, "breakpoints WHERE run = ? ORDER BY id", (run.id,)),
        approvals=list_approvals(connection, run.owner),
    )
