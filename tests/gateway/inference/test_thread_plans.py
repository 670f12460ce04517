"""How many threads are fastest is measured at the first load, kept, and shown."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from gateway.base.cores import usable_cores
from gateway.config.settings import ModelSettings
from gateway.inference.host import HostInference
from gateway.inference.process.launch import host_command
from gateway.inference.process.thread_plans import ThreadPlan, ThreadPlans
from gateway.models.catalog import ResolvedModel

FILE = ("/models/a.gguf", 1, 2)


def plan(**changes: object) -> ThreadPlan:
    fields: dict[str, object] = {
        "model": "a",
        "file": FILE,
        "cores": 2,
        "measured_at": time.time(),
        "load": 0.1,
        "plan": {1: 2},
        "speeds": {1: {1: 100.0, 2: 166.25}},
    }
    return ThreadPlan(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_plan_holds_for_its_file_and_number_of_cores(tmp_path: Path) -> None:
    plans = ThreadPlans(tmp_path / "threads")
    assert plans.get(FILE, 2) is None
    assert plans.all() == []
    plans.put(kept := plan())
    assert plans.get(FILE, 2) == kept
    assert plans.get(FILE, 4) is None
    assert plans.get(("/models/a.gguf", 1, 3), 2) is None
    assert plans.all() == [kept]


def test_a_plan_of_a_busy_machine_holds_for_an_hour(tmp_path: Path) -> None:
    plans = ThreadPlans(tmp_path)
    plans.put(plan(load=3.0))
    assert plans.get(FILE, 2) is not None
    plans.put(plan(load=3.0, measured_at=time.time() - 4000))
    assert plans.get(FILE, 2) is None
    plans.put(plan(load=0.3, measured_at=time.time() - 4000))
    assert plans.get(FILE, 2) is not None


def test_damaged_and_unwritable_plans_are_measured_again(tmp_path: Path) -> None:
    plans = ThreadPlans(tmp_path / "threads")
    plans.put(plan())
    (file,) = (tmp_path / "threads").iterdir()
    file.write_bytes(file.read_bytes()[:40])
    assert plans.get(FILE, 2) is None
    assert plans.all() == []
    (tmp_path / "a file").write_text("")
    ThreadPlans(tmp_path / "a file").put(plan())  # a warning in the log, no more


def test_the_command_has_the_speeds_unless_the_number_is_set(model: ResolvedModel) -> None:
    speeds = {1: {1: 100.0, 2: 166.25}, 64: {2: 812345.678}}
    command = host_command(model, ModelSettings(), None, speeds)
    assert command[command.index("--thread-speeds") + 1] == "1:1:100,1:2:166.25,64:2:812346"
    assert "--thread-speeds" not in host_command(model, ModelSettings(threads=3), None, speeds)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core leaves nothing to choose")
async def test_the_first_load_measures_and_the_next_one_knows(tmp_path: Path, tiny_model: Path) -> None:
    settings = ModelSettings(memory_headroom_bytes=0)
    plans = ThreadPlans(tmp_path / "threads")
    resolved = ResolvedModel(name="tiny", path=tiny_model, size_bytes=1, ram_bytes=1, context=512)
    inference = HostInference(resolved, settings, thread_plans=plans)
    try:
        await inference.warm()
        (kept,) = plans.all()
        assert (kept.model, kept.cores) == ("tiny", usable_cores())
        # Beside busy programs the time for measuring is over before the larger batch has its turn.
        assert list(kept.speeds) in ([8, 64, 1], [8, 1])
        assert inference.health().threads == kept.plan
        await inference.unload()
        await inference.warm()
        assert plans.all() == [kept]
        assert inference.health().threads == kept.plan
        await inference.refresh_stats()
        assert inference.health().threads == kept.plan
        assert "thread_plan" not in inference.health().stats
    finally:
        await inference.close()
