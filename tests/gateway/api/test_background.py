"""Failing background tasks are shown, counted and restarted."""

from __future__ import annotations

import asyncio
from typing import Any

import apsw
import pytest
from click.testing import CliRunner

from gateway.base import supervised
from gateway.cli.main import cli
from gateway.config.settings import Settings
from gateway.store.memory.jobs import lease_job
from tests.gateway.api.conftest import client_of, live
from tests.gateway.api.conversations.test_conversations import say, start, talker
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

WELL = {"name": "memory-worker", "state": "running", "restarts": 0, "problem": None}
PROBLEM = "an internal error (ValueError); the server's log has it"


async def test_an_unexpected_error_does_not_end_the_worker(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker fails with an unexpected error until the defect is removed."""
    defects: list[str] = []

    def lease(*values: Any, **named: Any) -> Any:
        if defects:
            raise ValueError(defects[0])
        return lease_job(*values, **named)

    monkeypatch.setattr("gateway.memory.worker.lease_job", lease)
    monkeypatch.setattr(supervised, "_FIRST_WAIT_SECONDS", 0.1)
    async with live(settings, ScriptedInference(talker)) as server, client_of(server) as client:

        async def health() -> dict[str, Any]:
            return dict((await client.get("/admin/health")).json())

        async def failing() -> bool:
            seen.update(await health())
            task = seen["background"][0]
            return bool(task["state"] == "restarting" and task["restarts"] >= 3)

        async def done() -> bool:
            return not database.execute("SELECT EXISTS (SELECT 1 FROM jobs)").get

        before, seen = await health(), dict[str, Any]()
        well = [WELL, *(WELL | {"name": name} for name in ("project-watcher", "run-worker"))]
        assert (before["status"], before["background"]) == ("ok", well)
        name = await start(client)
        database = apsw.Connection(str(settings.data_dir / "hearth.db"))
        defects.append("a defect")
        await say(client, name, "Hello", reply=False)  # which wakes the worker
        await until(failing)
        assert (seen["status"], seen["background"][0]["problem"]) == ("degraded", PROBLEM)
        lines = (await client.get("/metrics")).text.splitlines()
        series = 'background_task_restarts_total{task="memory-worker"} '
        [counted] = [line for line in lines if line.startswith(series)]
        assert float(counted.rpartition(" ")[2]) >= 3
        shown = await asyncio.to_thread(CliRunner().invoke, cli, ["status", "--url", server.url])
        assert f"problem:    memory-worker is restarting: {PROBLEM}" in shown.output
        defects.clear()
        await until(done)
        database.close()
        after = await health()
        task = after["background"][0]
        assert (after["status"], task["state"], task["problem"]) == ("ok", "running", PROBLEM)
        assert task["restarts"] >= 3, "what has happened stays visible"
