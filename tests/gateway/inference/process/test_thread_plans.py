"""The fastest numbers of threads are measured at the first load, kept, and shown."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gateway.base.cores import usable_cores
from gateway.config.settings import ModelSettings
from gateway.inference.process import thread_plans
from gateway.inference.process.launch import Launcher, host_command
from gateway.inference.process.thread_plans import ThreadPlan, ThreadPlans
from gateway.models.catalog import ResolvedModel
from tests.gateway.inference.helpers import MakeHost

FILE = ("/models/a.gguf", 1, 2)


def plan(**changes: object) -> ThreadPlan:
    fields: dict[str, object] = {
        "model": "a",
        "file": FILE,
        "cores": usable_cores(),
        "measured_at": time.time(),
        "plan": {1: 2},
        "speeds": {1: {1: 100.0, 2: 166.25}},
    }
    return ThreadPlan(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_plan_holds_for_its_file_and_number_of_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = ThreadPlans(tmp_path / "threads")
    assert plans.get(FILE) is None
    assert plans.all() == []
    plans.put(kept := plan())
    assert plans.get(FILE) == kept
    assert plans.get(("/models/a.gguf", 1, 3)) is None
    assert plans.all() == [kept]
    monkeypatch.setattr(thread_plans, "usable_cores", lambda: usable_cores() + 1)
    assert plans.get(FILE) is None


def test_damaged_and_unwritable_plans_are_measured_again(tmp_path: Path) -> None:
    plans = ThreadPlans(tmp_path / "threads")
    plans.put(plan())
    (file,) = (tmp_path / "threads").iterdir()
    file.write_bytes(file.read_bytes()[:40])
    assert plans.get(FILE) is None
    assert plans.all() == []
    (tmp_path / "a file").write_text("")
    ThreadPlans(tmp_path / "a file").put(plan())  # a warning in the log, no more


def test_the_command_has_the_plan_unless_the_number_is_set(model: ResolvedModel) -> None:
    command = host_command(model, ModelSettings(), None, {1: 1, 64: 2})
    assert command[command.index("--thread-plan") + 1] == "1:1,64:2"
    assert "--thread-plan" not in host_command(model, ModelSettings(threads=3), None, {1: 1, 64: 2})


async def test_the_first_load_measures_and_the_next_one_knows(
    tmp_path: Path, model: ResolvedModel, make_host: MakeHost
) -> None:
    plans = ThreadPlans(tmp_path / "threads")
    launcher = Launcher(model, ModelSettings(memory_headroom_bytes=0), thread_plans=plans)
    assert "--thread-plan" not in launcher.plan().command
    inference = make_host("--measured", thread_plans=plans)
    await inference.warm()
    (kept,) = plans.all()
    assert (kept.model, kept.cores, kept.plan) == ("fake", usable_cores(), {1: 1, 64: 2})
    assert kept.speeds == {1: {1: 100.0, 2: 90.0}, 64: {1: 400.0, 2: 700.0}}
    command = launcher.plan().command
    assert command[command.index("--thread-plan") + 1] == "1:1,64:2"
    assert inference.health().threads == kept.plan
    await inference.refresh_stats()
    assert inference.health().threads == {1: 1, 64: 1}, "what is in use now"
    assert "thread_plan" not in inference.health().stats


async def test_a_load_that_could_not_measure_leaves_it_to_the_next(
    tmp_path: Path, make_host: MakeHost
) -> None:
    plans = ThreadPlans(tmp_path / "threads")
    await make_host(thread_plans=plans).warm()
    assert plans.all() == []
