"""Runs over MCP: they are listed, and a BREAKPOINT is answered once, in time, by its owner."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2

from gateway.config.settings import Settings
from tests.gateway.api.conftest import changed, inference, live, make_key, settings
from tests.gateway.api.mcp.test_tools import called, connected, refused
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import PATIENCE

__all__ = ["inference", "settings"]


async def waiting_run(url: str, key: str, *steps: str) -> dict[str, Any]:
    """A hybrid run at its first BREAKPOINT."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(base_url=url, headers=headers) as http, asyncio.timeout(PATIENCE):
        made = (await http.post("/v1/tasks", json={"title": "errand", "archetype": "hybrid"})).json()["id"]
        (await http.post(f"/v1/tasks/{made}/run", json={"steps": list(steps)})).raise_for_status()
        async with http.stream("GET", f"/v1/tasks/{made}/events") as reply:
            async for event in httpx2.EventSource(reply):
                run: dict[str, Any] = event.json()
                if run["state"] == "waiting":
                    return run
    raise AssertionError("the run did not wait")


async def test_a_breakpoint_over_mcp(settings: Settings, inference: ScriptedInference) -> None:
    settings = changed(settings, "mcp", write=True)
    mine, theirs = (make_key(settings, name, "user") for name in ("ann", "bob"))
    async with live(settings, inference) as server:
        run = await waiting_run(server.url, mine, "add_task: buy milk", "add_task: buy bread")
        given = {"task": run["task"], "breakpoint": run["breakpoint"]["id"], "answer": "yes"}
        async with connected(server, key=theirs) as client:
            assert (await called(client, "runs"))["data"] == []
            assert "there is no task" in await refused(client, "answer_breakpoint", **given)
        async with connected(server, key=mine) as client:
            [listed] = (await called(client, "runs"))["data"]
            assert listed["breakpoint"]["question"].startswith("May this be done: add_task(title='buy milk')")
            assert listed["breakpoint"]["schema"] == {"enum": ["yes", "always", "skip", "cancel"]}
            wrong = {**given, "answer": "perhaps"}
            assert "possible here" in await refused(client, "answer_breakpoint", **wrong)
            for word in ("always", " ALWAYS"):
                always = {**given, "answer": word}
                assert "not taken over MCP" in await refused(client, "answer_breakpoint", **always)
            both = await asyncio.gather(*(client.call_tool("answer_breakpoint", given) for _ in range(2)))
            assert sorted(each.is_error or False for each in both) == [False, True]
    late = changed(settings, "tasks", answer_days=1e-9)
    async with live(late, inference) as server, connected(server, key=mine) as client:  # after a restart
        run = await waiting_run(server.url, mine, "ask: Which?")
        old = {"task": run["task"], "breakpoint": run["breakpoint"]["id"], "answer": "this"}
        assert "has expired" in await refused(client, "answer_breakpoint", **old)
        titles = [each["title"] for each in (await called(client, "tasks"))["data"]]
        assert titles.count("buy milk") == 1
    reading = changed(settings, "mcp", write=False)
    async with live(reading, inference) as server, connected(server, key=mine) as client:
        assert "answer_breakpoint" not in [tool.name for tool in (await client.list_tools()).tools]
