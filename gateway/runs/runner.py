"""The handler of jobs of the kind ``run``: one step of a run a job.

The intent is stored before the effect; the result, the item's state and the next job are one transaction after it. So
after a crash finished steps are skipped, and a step that was begun is repeated only if that changes nothing more.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import apsw
import msgspec
import structlog
from msgspec import Struct

from gateway.base.aio import finish
from gateway.base.errors import HearthError, InvalidRequestError
from gateway.base.redact import redact
from gateway.config.settings import TaskSettings
from gateway.inference.interface import Inference
from gateway.memory.model import Filled, MemoryModel, Record
from gateway.memory.pace import Pace
from gateway.memory.worker import JobPostponedError
from gateway.models.prompts import PromptSet
from gateway.models.served import ServedModel
from gateway.runs.answers import make_items, proceed
from gateway.runs.decide import STEPS_OR_CANCEL, Ask, Execute, Finish, asked, decide
from gateway.runs.planning.items import PlannedItem
from gateway.runs.planning.known import known_here, known_in
from gateway.runs.planning.written import items_by_model
from gateway.runs.reading import checked_reading
from gateway.runs.recorded import new_request, of_step, step_record
from gateway.runs.starting import Starter
from gateway.runs.tool import Calling, Toolbox, ToolOutput, as_data, fenced, without_repetition
from gateway.store.db import Database
from gateway.store.memory.jobs import Job, finish_job, put_back_job
from gateway.store.memory.notices import add_notice, breakpoint_source
from gateway.store.memory.runs import (
    NewBreakpoint,
    RunConflictError,
    RunStep,
    RunView,
    add_breakpoint,
    any_run,
    begin_step,
    end_step,
    open_runs,
    save_run,
    set_item_state,
)
from gateway.store.memory.tasks import Archetype
from gateway.store.request_log import RequestRecord

log = structlog.get_logger(__name__)

_ATTEMPTS = 3  # of a step that fails in a way that may pass
_DAY_SECONDS = 86_400.0
_SHOWN_CHARACTERS = 6000  # of all results in the prompt of a step


class RunParts(Struct, frozen=True, kw_only=True):
    """Services that runs use."""

    database: Database
    inference: Inference
    prompts: PromptSet
    settings: TaskSettings
    served: ServedModel
    record: Record
    tools: Toolbox
    pace: Pace = msgspec.field(default_factory=Pace)

    @property
    def starter(self) -> Starter:
        return Starter(self.settings, self.tools, known_here(self.database))

    def model(self, owner: str, record: Record) -> MemoryModel:
        return MemoryModel(self.inference, record, self.pace, owner, "", self.served.current.name)


class _Work(Struct, frozen=True):
    """Work that :meth:`Runner._advance` leaves for outside of its transaction; no ``do``: write the checklist."""

    view: RunView
    step: int = 0
    do: Execute | None = None


class Runner:
    """``changed`` is called with owner and task after each change."""

    def __init__(self, parts: RunParts, changed: Callable[[str, str], None]) -> None:
        self._parts = parts
        self._changed = changed

    async def run(self, job: Job) -> None:
        now = await self._parts.database.read(lambda c: any_run(c, job.subject))
        items = now.items if now is not None else ()
        await self._parts.tools.ready(str(item.tool.get("name")) for item in items if item.tool)
        view, work = await self._parts.database.write(lambda c: self._advance(c, job))
        if view is None:
            return
        self._tell(view)
        if work is not None:
            if work.do is None:
                await self._plan(work.view, job)
            else:
                await self._carry_out(work, work.do, job)
            self._tell(view)

    def _tell(self, view: RunView) -> None:
        """Tell those who follow the task, or the objective that it belongs to."""
        self._changed(view.run.owner, view.run.task)
        if view.task.parent is not None:
            self._changed(view.run.owner, view.task.parent)

    def _advance(self, connection: apsw.Connection, job: Job) -> tuple[RunView | None, _Work | None]:
        """Decide, and store what was decided; return what is left to do, None if the job has ended."""
        view = any_run(connection, job.subject)
        work = self._decided(connection, view) if view is not None and view.run.state == "running" else None
        if work is None:
            finish_job(connection, job)
        return view, work

    def _decided(self, connection: apsw.Connection, view: RunView) -> _Work | None:
        now = time.time()
        if view.task.state in ("done", "cancelled"):  # by the user
            ended = msgspec.structs.replace(view.run, state="cancelled")
            save_run(connection, ended, view.task.state, now)
            return None
        if view.task.level == "objective":
            self._next_task(connection, view)
            return None
        match decide(view, self._parts.tools):
            case Ask(breakpoint):
                self._stop(connection, view, breakpoint)
                return None
            case Finish(result):
                self._end(connection, view, result)
                return None
            case Execute() as do:
                step = do.again.seq if do.again else begin_step(connection, view.run.id, do.intent, now)
                set_item_state(connection, view.run, do.intent.item, "doing", now)
                return _Work(view, step, do)
        return _Work(view)

    def _next_task(self, connection: apsw.Connection, view: RunView) -> None:
        """Start the next task of an objective, whose end wakes this run again; ask for tasks if there are none."""
        left = [task for task in view.items if task.state not in ("done", "cancelled")]
        if not view.items:
            question = f"Which tasks does {view.task.title!r} have? Write one a line."
            new = NewBreakpoint(item=None, kind="checklist", question=question, schema=STEPS_OR_CANCEL)
            self._stop(connection, view, new)
        elif not left:
            self._end(connection, view, "")
        elif left[0].id not in {run.task for run in open_runs(connection, view.task.id, view.run.owner)}:
            owner, strict = view.run.owner, "hybrid" in (view.task.archetype, left[0].archetype)
            archetype: Archetype = "hybrid" if strict else view.task.archetype
            try:
                self._parts.starter.start(connection, left[0].id, owner, None, archetype)
            except InvalidRequestError as error:
                question = f"The task {left[0].title!r} cannot be started: {error.message}. Retry it?"
                choices = ["retry", "skip", "cancel"]
                self._stop(connection, view, asked("failed", question, choices, item=left[0].id))

    def _stop(self, connection: apsw.Connection, view: RunView, new: NewBreakpoint) -> None:
        """Wait for the owner at a BREAKPOINT."""
        run, now = view.run, time.time()
        expires = now + self._parts.settings.answer_days * _DAY_SECONDS
        number = add_breakpoint(connection, run, new, now=now, expires_at=expires)
        save_run(connection, msgspec.structs.replace(run, state="waiting"), "waiting", now)
        if new.item is not None:
            set_item_state(connection, run, new.item, "waiting", now)
        choices = f" [{'/'.join(new.choices)}]" if new.choices else ""
        text = f"{view.task.title}: {new.question}{choices}"
        add_notice(connection, run.owner, run.task, text, breakpoint_source(number), now)

    def _end(self, connection: apsw.Connection, view: RunView, result: str) -> None:
        run, now = view.run, time.time()
        save_run(connection, msgspec.structs.replace(run, state="done", result=result), "done", now)
        text = f"Done: {view.task.title}\n{result}".rstrip()
        add_notice(connection, run.owner, run.task, text, f"{run.id} done", now)

    async def _carry_out(self, work: _Work, do: Execute, job: Job) -> None:
        """The effect, then its outcome with the next job. Raises JobPostponedError of a tool that waits."""
        view, began, begun_at = work.view, time.monotonic(), time.time()
        output, problem, request = ToolOutput(""), None, new_request()
        limit = max(1.0, view.run.max_seconds - view.run.seconds)
        try:
            async with asyncio.timeout(limit):
                output = await self._call(view, do, work.step, request)
        except HearthError as error:
            problem = error
        except JobPostponedError:
            raise
        except TimeoutError:
            problem = HearthError(
                f"it was stopped after {limit:.0f} seconds, the limit of the run", code="limit"
            )
        seconds = time.monotonic() - began
        clean, _ = redact(as_data(output.text, self._parts.settings.result_characters))
        tool = self._parts.tools.find(do.intent.tool)
        if tool is not None and not tool.recorded:
            made = step_record(
                request, view, work.step, do.intent, problem or clean, began_at=begun_at, seconds=seconds
            )
            await finish(self._parts.record(lambda: made))

        def store(connection: apsw.Connection) -> None:
            now = time.time()
            if problem is None:
                tokens = output.tokens
                end_step(
                    connection, work.step, "done", clean, now, tokens=tokens, seconds=seconds, request=request
                )
                set_item_state(connection, view.run, do.intent.item, "done", now)
                self._go_on(connection, view, job)
                return
            failed = redact(problem.message)[0]
            end_step(connection, work.step, "failed", failed, now, seconds=seconds, request=request)
            self._after_failure(connection, view, do, problem, job)

        await finish(self._parts.database.write(store))

    def _go_on(self, connection: apsw.Connection, view: RunView, job: Job) -> None:
        now, current = time.time(), any_run(connection, view.run.id)
        finish_job(connection, job)
        if current is not None and current.run.state == "running":
            proceed(connection, current.run, now)

    def _after_failure(
        self, connection: apsw.Connection, view: RunView, do: Execute, problem: HearthError, job: Job
    ) -> None:
        """Try again later, or ask."""
        item, tool = do.intent.item, self._parts.tools.find(do.intent.tool)
        failed = sum(step.item == item and step.outcome == "failed" for step in view.steps) + 1
        if problem.code == "limit":
            self._go_on(connection, view, job)
        elif problem.retry_after is not None and failed < _ATTEMPTS and (tool is None or tool.repeatable):
            put_back_job(
                connection, job, not_before=time.time() + problem.retry_after, problem=problem.message
            )
        else:
            current = any_run(connection, view.run.id) or view
            title = next((each.title for each in view.items if each.id == item), do.intent.tool)
            question = f"The step {title!r} failed: {problem.message}. Retry it?"
            self._stop(connection, current, asked("failed", question, ["retry", "skip", "cancel"], item=item))
            finish_job(connection, job)

    async def replay(self, view: RunView, step: RunStep) -> str:
        """Result of a read-only step, now; nothing is stored. Raises RunConflictError for any other."""
        tool = self._parts.tools.get(step.tool) if step.tool else None
        if tool is None or not tool.only_reads:
            raise RunConflictError(
                f"`{step.tool or 'ask'}` is not called again for a comparison: it does more than read",
                code="not_reading",
            )
        calling = Calling(
            owner=view.run.owner, task=view.run.task, source=f"{view.run.id} replay", request=new_request()
        )
        async with asyncio.timeout(view.run.max_seconds):
            output = await tool.call(calling, tool.checked(step.arguments))
        return redact(as_data(output.text, self._parts.settings.result_characters))[0]

    async def _call(self, view: RunView, do: Execute, step: int, request: str) -> ToolOutput:
        intent = do.intent
        if not intent.tool:
            return await self._think(view, intent.arguments["question"], step, request)
        tool = self._parts.tools.get(intent.tool)
        source = f"{view.run.id} step {step}"
        calling = Calling(owner=view.run.owner, task=view.run.task, source=source, request=request)
        return await tool.call(calling, tool.checked(intent.arguments))

    async def _think(self, view: RunView, question: str, step: int, request: str) -> ToolOutput:
        """The model's answer to a question of the checklist, with the results of earlier steps."""
        known = [step for step in view.steps if step.outcome in ("done", "answered")]
        each = _SHOWN_CHARACTERS // max(1, len(known))
        titles = {item.id: item.title for item in view.items}
        results = "\n\n".join(
            f"{titles.get(step.item, step.tool)}\n{fenced(as_data(step.result or '', each))}"
            for step in known
        )
        values = {"results": results or "(none)", "task": view.task.title, "question": question}
        written, tokens = await self._write(view, "step", values, step=step, request=request)
        said, read = without_repetition(written), [each for each in known if each.tool]
        if self._parts.served.current.small and [each.tool for each in read] == ["read_file"]:
            path, text = str(read[0].arguments["path"]), read[0].result or ""
            said = await asyncio.to_thread(checked_reading, path, text, question, said)
        return ToolOutput(said, tokens)

    async def _plan(self, view: RunView, job: Job) -> None:
        """Have the model make the checklist of a title that the rules do not cover; ask for steps if it cannot."""
        tools, title, began = self._parts.tools, view.task.title, time.monotonic()
        known = await self._parts.database.local.read(lambda c: known_in(c, title))
        items: list[PlannedItem] = []
        tokens, problem = 0, ""

        async def write(prompt: str, values: dict[str, str], schema: dict[str, Any]) -> str:
            nonlocal tokens
            written, spent = await self._write(view, prompt, values, schema)
            tokens += spent
            return written

        try:
            asks = view.task.archetype == "hybrid"
            items = await items_by_model(title, tools, known, write, asks=asks)
        except HearthError as error:
            if error.retry_after is not None:
                raise
            problem = error.message
        seconds = time.monotonic() - began

        def store(connection: apsw.Connection) -> None:
            current = any_run(connection, view.run.id)
            if current is None or current.run.state != "running":
                finish_job(connection, job)
                return
            spent = msgspec.structs.replace(
                current.run,
                tokens=current.run.tokens + tokens,
                seconds=current.run.seconds + seconds,
                planned="" if problem else "model",
            )
            if current.items:  # the user wrote some meanwhile
                proceed(connection, msgspec.structs.replace(spent, planned="user"), time.time())
            elif problem:
                question = (
                    f"{problem}. Write the steps of {title!r}, one a line, such as `ask_wiki: QUESTION`, "
                    "`add_task: TITLE` or `ask: QUESTION` (to you)."
                )
                new = NewBreakpoint(item=None, kind="checklist", question=question, schema=STEPS_OR_CANCEL)
                self._stop(connection, msgspec.structs.replace(current, run=spent), new)
            else:
                make_items(connection, current.task, items, time.time())
                proceed(connection, spent, time.time())
            finish_job(connection, job)

        await finish(self._parts.database.write(store))

    async def _write(
        self,
        view: RunView,
        prompt: str,
        values: dict[str, str],
        schema: dict[str, Any] | None = None,
        *,
        step: int | None = None,
        request: str = "",
    ) -> tuple[str, int]:
        """The model's text, and its tokens with those of the prompt. The record names the task and the step."""
        parts, used = self._parts, self._parts.prompts.get(prompt)

        async def record(make: Callable[[], RequestRecord]) -> None:
            made = make()
            await parts.record(
                lambda: msgspec.structs.replace(made, details=made.details | of_step(view, step))
            )

        filled = Filled(msgspec.structs.replace(used, schema=schema) if schema else used, values)
        model = parts.model(view.run.owner, record)
        written, _ = await model.write(filled, max_tokens=used.max_tokens or 300, request=request)
        return written, sum(await parts.inference.count([filled.text, written]))
