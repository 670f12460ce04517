"""kill -9 at random while tasks append to a file: each line is there once, and every doubtful step was asked about."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
from pathlib import Path

import apsw
import pytest

from tests.gateway.runs.appending import STEPS, TASKS, lines_of, main, make_tasks
from tests.waiting import PATIENCE

# More by hand: HEARTH_TEST_KILLS=500 python -m pytest tests/gateway/runs/test_kills.py
KILLS = int(os.environ.get("HEARTH_TEST_KILLS", "25"))


@pytest.mark.timeout(0)
def test_no_step_is_lost_or_done_twice(tmp_path: Path) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.gateway.runs.appending"])
    batch, kills, done = 0, 0, True
    while kills < KILLS or not done:
        if done:
            asyncio.run(make_tasks(tmp_path, batch))
            batch += 1
        told, telling = context.Pipe(duplex=False)
        process = context.Process(target=main, args=(str(tmp_path), telling))
        process.start()
        telling.close()
        assert told.recv() == "runs"
        killing = kills < KILLS
        done = told.poll(random.uniform(0, 0.15) if killing else PATIENCE)
        if not done:
            assert killing, "the runs do not end"
            process.kill()
            kills += 1
        process.join()
        told.close()
    lines = lines_of(tmp_path / "lines")
    wanted = {
        f"{made} {task} {step}" for made in range(batch) for task in range(TASKS) for step in range(STEPS)
    }
    assert sorted(lines) == sorted(wanted)
    database = apsw.Connection(str(tmp_path / "hearth.db"))
    asked = database.execute("SELECT count(*) FROM breakpoints WHERE kind = 'happened'").get
    answers = database.execute(
        "SELECT json_extract(answer, '$.value'), count(*) FROM breakpoints GROUP BY 1"
    ).fetchall()
    twice = database.execute(
        "SELECT count(*) FROM (SELECT item FROM run_steps WHERE outcome = 'done' GROUP BY item HAVING count(*) > 1)"
    ).get
    print(f"{kills} kills, {len(lines)} lines, {asked} doubtful steps: {answers}")
    assert twice == 0
    assert database.execute("SELECT count(*) FROM runs WHERE state <> 'done'").get == 0
    assert database.execute("SELECT count(*) FROM jobs").get == 0
