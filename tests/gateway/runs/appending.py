"""Processes that run tasks with a tool that appends to a file, to be killed at any moment."""

from __future__ import annotations

import asyncio
import os
import random
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from gateway.api.recording.recorder import Recorder
from gateway.base.supervised import Supervision
from gateway.cli.common.files import opened_database
from gateway.config.settings import LogSettings, TaskSettings
from gateway.models.prompts import PromptSet
from gateway.runs.runner import RunParts
from gateway.runs.service import Runs
from gateway.runs.tool import Calling, RunTool, Toolbox, ToolOutput
from gateway.store.db import Database
from gateway.store.memory.runs import any_run
from gateway.store.memory.tasks import NewTask, add_task
from gateway.store.rows import load
from gateway.telemetry.metrics import Metrics

OWNER, TASKS, STEPS = "ann", 20, 5


class Line(Struct, frozen=True):
    line: str


class Names(Struct, frozen=True):
    id: str


def lines_of(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def appender(file: Path) -> RunTool:
    async def append(calling: Calling, given: Line) -> ToolOutput:
        """Append a line to the file."""
        await asyncio.sleep(random.uniform(0, 0.01))
        handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{given.line}\n".encode())
        os.close(handle)
        await asyncio.sleep(random.uniform(0, 0.01))
        return ToolOutput(given.line)

    return RunTool(Line, append, frozenset({"effect"}), repeatable=False)


def runs_of(database: Database, folder: Path, record: Recorder) -> Runs:
    """Runs without a model, which append to the file."""
    parts = RunParts(
        database=database,
        inference=cast("Any", None),
        prompts=PromptSet([]),
        settings=TaskSettings(),
        served=cast("Any", None),
        record=record,
        tools=Toolbox([appender(folder / "lines")]),
    )
    return Runs(parts)


async def work(folder: Path, told: Connection) -> None:
    """Run the tasks of the database, and answer truthfully whether a line was written; tell when all are done."""
    database, file = Database(folder / "hearth.db"), folder / "lines"
    database.open()
    runs = runs_of(database, folder, Recorder(LogSettings(), database, Metrics()))
    await runs.start(Supervision())
    told.send("runs")
    while True:
        open_runs = database.read_sync(lambda c: load(c, Names, "SELECT id FROM runs WHERE state <> 'done'"))
        views = [database.read_sync(lambda c, name=each.id: any_run(c, name)) for each in open_runs]
        if not views:
            break
        for view in views:
            if view is not None and (waiting := view.waiting_for) is not None:
                assert waiting.kind == "happened", waiting
                [step] = [each for each in view.steps if each.outcome is None]
                happened = step.arguments["line"] in lines_of(file)
                await runs.answer(view.run.task, OWNER, waiting.id, "yes" if happened else "no")
        await asyncio.sleep(0.005)
    told.send("done")
    await runs.close()
    database.close()


def main(folder: str, told: Connection) -> None:
    asyncio.run(work(Path(folder), told))


async def make_tasks(folder: Path, batch: int) -> None:
    """Twenty tasks whose steps append lines, and their runs, which no process works on yet."""
    with opened_database(folder / "hearth.db") as database:
        runs = runs_of(database, folder, cast("Any", None))
        for number in range(TASKS):
            new = NewTask(
                owner=OWNER,
                level="task",
                parent=None,
                archetype="model",
                title=f"task {number}",
                day=f"{2000 + batch}-01-01",
                created_at=time.time(),
            )
            task = database.write_sync(lambda c, new=new: add_task(c, new))
            steps = [f"append: {batch} {number} {step}" for step in range(STEPS)]
            await runs.begin(task.id, OWNER, steps, None)
