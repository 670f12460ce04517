"""Runs: start, watch, answer, pause, resume and cancel them."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import TypeVar

import apsw
import msgspec
from msgspec import Struct

from gateway.base.aio import finish
from gateway.base.errors import InvalidRequestError, NotFoundError
from gateway.base.supervised import Supervision
from gateway.memory.hub import Hub
from gateway.memory.worker import Worker
from gateway.runs.answers import Answer, give_answer, make_items, proceed
from gateway.runs.planning.checklist import items_of_lines, named_tools
from gateway.runs.recorded import new_request, step_record
from gateway.runs.requests.chat import ChatRequests
from gateway.runs.runner import Runner, RunParts
from gateway.runs.starting import check_has_steps, drop_draft
from gateway.runs.webhook import Webhook
from gateway.store.memory.notices import Notice, see_notices, unseen_notices
from gateway.store.memory.runs import (
    RunConflictError,
    RunStep,
    RunView,
    TaskRun,
    close_breakpoints,
    end_runs,
    end_step,
    open_runs,
    run_of,
    save_run,
    set_state,
    step_recorded_as,
)
from gateway.store.memory.tasks import Archetype, Task, get_task

T = TypeVar("T")

# Steps at once, of all runs: a step may keep the model busy for a minute.
AT_ONCE = 2


class FollowingSince(Struct, frozen=True):
    """From now on every change is told."""


class Runs:
    """The interface to the API."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._hub = Hub(parts.database.peers, "runs")
        self._webhook = Webhook(parts.database, parts.settings)
        self._runner = Runner(parts, self._changed)
        self._worker = Worker(parts.database, {"run": self._runner.run}, name="run-worker", at_once=AT_ONCE)

    async def start(self, supervision: Supervision) -> None:
        await self._worker.start(supervision)
        self._webhook.start(supervision)

    async def close(self) -> None:
        """Interrupt steps; they stay queued in the database."""
        await self._worker.close()
        await self._webhook.close()

    def requests(self, zone: str) -> ChatRequests:
        """Carries out the requests of chats, in that zone where a conversation has none of its own."""
        parts = self._parts
        return ChatRequests(parts.database, parts.starter, zone, self._worker.wake)

    async def make(self, store: Callable[[apsw.Connection], Task], changed: str, owner: str) -> Task:
        """Make a task with ``store``, or change the title, archetype or items of the task ``changed``.

        One that does itself gets its checklist, in place of one that nobody has begun.
        """
        parts = self._parts

        def whole(connection: apsw.Connection) -> Task:
            drop_draft(connection, changed, owner)
            task = store(connection)
            parts.starter.prepare(connection, task)
            return task

        task = await parts.database.write(whole)
        self._worker.wake()
        self._changed(owner, task.id)
        return task

    async def begin(
        self, task: str, owner: str, steps: Sequence[str] | None, archetype: Archetype | None
    ) -> RunView:
        """Start a run, or the one that was prepared. Its checklist is ``steps``, the task's or the title's.

        Raises NotFoundError, RunConflictError if the task runs already, InvalidRequestError for a step or archetype.
        """
        parts = self._parts
        await parts.tools.ready(named_tools(steps or ()))
        await parts.database.write(lambda c: parts.starter.start(c, task, owner, steps, archetype))
        return await self._moved(task, owner)

    async def view(self, task: str, owner: str) -> RunView:
        """The task's newest run. Raises NotFoundError."""
        return await self._parts.database.read(lambda c: run_of(c, task, owner))

    async def watch(self, task: str, owner: str) -> AsyncGenerator[RunView, None]:
        """The run as it is, and again after each change, until it has ended. Raises NotFoundError."""
        async with self._hub.listen(_key(owner, task)) as listener:
            while True:
                view = await self.view(task, owner)
                yield view
                if view.run.state in ("done", "cancelled"):
                    return
                await listener.next()

    async def answer(self, task: str, owner: str, number: int | None, value: Answer) -> RunView:
        """Answer a BREAKPOINT. Raises as :func:`gateway.runs.answers.give_answer`."""
        tools = self._parts.tools
        await tools.ready(named_tools(value if isinstance(value, list) else re.split(r"[;\n]", value)))
        request = new_request()
        before = await self._parts.database.read(lambda c: open_runs(c, task, owner))
        await self._parts.database.write(lambda c: give_answer(c, task, owner, number, value, tools, request))
        view = await self._moved(task, owner)
        for run in before if view.run.state == "cancelled" else ():  # with those of an objective's tasks
            async with self._worker.holding(run.id):
                self._changed(owner, run.task)
        step = next((each for each in view.steps if each.request == request), None)
        if step is not None:
            made = step_record(request, view, step.seq, step, step.result or "", began_at=step.began_at)
            await finish(self._parts.record(lambda: made))
        return view

    async def pause(self, task: str, owner: str) -> RunView:
        """Stop after what is being done now is interrupted, also in an objective's tasks; :meth:`resume` goes on."""

        def store(connection: apsw.Connection) -> None:
            _open(connection, task, owner)
            for run in open_runs(connection, task, owner):
                if run.task == task or run.state == "running":
                    save_run(connection, msgspec.structs.replace(run, state="paused"), "waiting", time.time())

        return await self._alone(task, owner, store)

    async def resume(self, task: str, owner: str) -> RunView:
        """Go on with a run that is paused, with an objective's paused tasks, or ask its BREAKPOINT again."""

        def store(connection: apsw.Connection) -> list[TaskRun]:
            _open(connection, task, owner)
            found = open_runs(connection, task, owner)
            resumed = [run for run in found if run.task == task or run.state == "paused"]
            for run in resumed:
                close_breakpoints(connection, run.id, time.time())
                proceed(connection, run, time.time())
            return resumed

        for run in await self._parts.database.write(store):  # none has a step that is being done
            self._changed(owner, run.task)
        return await self._moved(task, owner)

    async def edit(self, task: str, owner: str, steps: Sequence[str]) -> RunView:
        """Replace the items that are not done. Raises as :meth:`begin`, and RunConflictError if the run has ended."""
        tools = self._parts.tools
        await tools.ready(named_tools(steps))

        def store(connection: apsw.Connection) -> None:
            run, now = _open(connection, task, owner), time.time()
            found = get_task(connection, task, owner)
            check_has_steps(found)
            close_breakpoints(connection, run.id, now)
            for step in run_of(connection, task, owner).steps:
                used = tools.find(step.tool)
                if step.outcome is None and (not step.tool or (used is not None and used.repeatable)):
                    end_step(connection, step.seq, "failed", "replaced by other steps", now)
            make_items(connection, found, items_of_lines(steps, tools), now)
            proceed(connection, msgspec.structs.replace(run, planned="user"), now)

        return await self._alone(task, owner, store)

    async def retry(self, task: str, owner: str, number: int) -> RunView:
        """Run an item again, counted from 1, even in a run that has ended. Raises InvalidRequestError."""

        def store(connection: apsw.Connection) -> None:
            view, now = run_of(connection, task, owner), time.time()
            if not 1 <= number <= len(view.items):
                raise InvalidRequestError(
                    f"`step` is {number}, and there are {len(view.items)}", param="step"
                )
            close_breakpoints(connection, view.run.id, now)
            set_state(connection, view.items[number - 1], "open", now)
            proceed(connection, msgspec.structs.replace(view.run, result=None), now)

        return await self._alone(task, owner, store)

    async def replay(self, task: str, owner: str, request: str) -> tuple[RunStep, str]:
        """The step with that id in the request log, and what its call returns now.

        Raises NotFoundError, RunConflictError if its tool does more than read, and what the tool raises.
        """
        view, step = await self._parts.database.read(lambda c: step_recorded_as(c, task, owner, request))
        await self._parts.tools.ready([step.tool])
        return step, await self._runner.replay(view, step)

    async def cancel(self, task: str, owner: str) -> RunView:
        """End a run and its task; that of an objective with the runs of its tasks."""

        def store(connection: apsw.Connection) -> None:
            _open(connection, task, owner)
            end_runs(connection, task, owner, time.time())

        return await self._alone(task, owner, store)

    async def change(self, task: str, owner: str, store: Callable[[apsw.Connection], T]) -> T:
        """Change or delete a task while no step of its runs is being done."""
        async with self._still(task, owner):
            changed = await self._parts.database.write(store)
        self._worker.wake()
        return changed

    async def notices(self, owner: str) -> list[Notice]:
        """The notices that the owner has not seen; they count as seen from now on."""

        def take(connection: apsw.Connection) -> list[Notice]:
            found = unseen_notices(connection, owner)
            see_notices(connection, owner, found[-1].seq if found else 0, time.time())
            return found

        return await self._parts.database.write(take)

    async def news(self, owner: str) -> AsyncGenerator[Notice | RunView | FollowingSince, None]:
        """The owner's notices, each once, and their runs after each change. A notice counts as seen once taken.

        :class:`FollowingSince` comes first, and when changes were missed.
        """
        async with self._hub.listen(owner) as listener:
            yield FollowingSince()
            while True:
                for notice in await self._parts.database.read(lambda c: unseen_notices(c, owner)):
                    yield notice
                    await self._parts.database.write(
                        lambda c, seq=notice.seq: see_notices(c, owner, seq, time.time())  # type: ignore[misc]
                    )
                changed = (await listener.next()).detail.get("task")
                if changed is None:
                    yield FollowingSince()
                else:
                    with contextlib.suppress(NotFoundError):  # deleted meanwhile
                        yield await self.view(changed, owner)

    async def _alone(self, task: str, owner: str, store: Callable[[apsw.Connection], None]) -> RunView:
        """Interrupt the steps of the run and of those below it, and change the run."""
        await self.change(task, owner, store)
        return await self._moved(task, owner)

    @contextlib.asynccontextmanager
    async def _still(self, task: str, owner: str) -> AsyncIterator[None]:
        """No step of the task and of those below it is done meanwhile. They are told of changes at the end."""
        async with contextlib.AsyncExitStack() as held:
            runs: dict[str, str] = {}
            while new := [
                run
                for run in await self._parts.database.read(lambda c: open_runs(c, task, owner))
                if run.id not in runs
            ]:  # the objective's first, and again: until it was held it may have started a task
                for run in new:
                    await held.enter_async_context(self._worker.holding(run.id))
                    runs[run.id] = run.task
            yield
        for each in runs.values():
            self._changed(owner, each)

    async def _moved(self, task: str, owner: str) -> RunView:
        self._worker.wake()
        self._changed(owner, task)
        return await self.view(task, owner)

    def _changed(self, owner: str, task: str) -> None:
        self._hub.publish(_key(owner, task), "run")
        self._hub.publish(owner, "run", task=task)
        self._webhook.wake()


def _open(connection: apsw.Connection, task: str, owner: str) -> TaskRun:
    run = run_of(connection, task, owner).run
    if run.state in ("done", "cancelled"):
        raise RunConflictError(f"the run of `{task}` has ended: it is {run.state}", code="run_ended")
    return run


def _key(owner: str, task: str) -> str:
    return f"{owner}\n{task}"
