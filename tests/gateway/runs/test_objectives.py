"""An objective runs its tasks one after the other, and what is done to either of them reaches the other."""

from __future__ import annotations

from typing import Any

import apsw
import pytest

from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, in_process
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import answer, begin, notices, rest


async def objective(client: Client, title: str) -> str:
    body = {"title": title, "level": "objective", "archetype": "model"}
    goal = str((await client.post("/v1/tasks", json=body)).json()["id"])
    assert (await client.post(f"/v1/tasks/{goal}/run", json={})).status_code == 201
    return goal


async def test_listed_tasks_run_in_order(settings: Settings, inference: ScriptedInference) -> None:
    title = "Tidy up: notify me that: one is done, remember that: boxes are blue, add a task: paint"
    async with in_process(settings, inference) as client:
        run = await rest(client, await objective(client, title))
        assert (run["state"], run["title"]) == ("done", "Tidy up"), run
        assert [step["state"] for step in run["steps"]] == ["done"] * 3
        assert "one is done" in await notices(client)


async def test_it_waits_for_a_task_that_waits_also_after_a_restart(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with in_process(settings, inference) as client:
        goal = await objective(client, "Move house")
        run = await rest(client, goal)
        assert run["breakpoint"]["question"] == "Which tasks does 'Move house' have? Write one a line."
        tasks = ["wash the car", "notify me that: it is over"]
        assert (await client.post(f"/v1/tasks/{goal}/answer", json={"answer": tasks})).status_code == 200
        first = f"T-{goal[2:10]}-01"
        await rest(client, goal, lambda run: bool(run["steps"]) and run["steps"][0]["state"] == "waiting")
    async with in_process(settings, inference) as client:
        assert (await client.get(f"/v1/tasks/{goal}/run")).json()["state"] == "running"
        await answer(client, first, ["notify: the car"])
        run = await rest(client, goal)
        assert (run["state"], [step["state"] for step in run["steps"]]) == ("done", ["done", "done"])


async def test_its_end_ends_its_tasks(client: Client) -> None:
    goal = await objective(client, "Sleep: remind me in 9 hours to sleep, notify me that: never")
    run = await rest(client, goal, lambda run: bool(run["steps"]) and run["steps"][0]["state"] == "doing")
    assert (await client.post(f"/v1/tasks/{goal}/cancel")).json()["state"] == "cancelled"
    first = (await client.get(f"/v1/tasks/{run['steps'][0]['id']}/run")).json()
    assert first["state"] == "cancelled"
    assert "never" not in await notices(client)


WAITS = "Sleep: remind me in 9 hours to sleep, notify me that: it is over"


async def started(client: Client, title: str = WAITS) -> tuple[str, list[str]]:
    """An objective whose first task is being done, and its tasks."""
    goal = await objective(client, title)
    await rest(client, goal, lambda run: bool(run["steps"]) and run["steps"][0]["state"] == "doing")
    tasks = [f"T-{goal[2:10]}-{number:02}" for number in (1, 2)]
    await rest(client, tasks[0], lambda run: bool(run["steps"]) and run["steps"][0]["state"] == "doing")
    return goal, tasks


async def run_state(client: Client, task: str) -> str:
    return str((await client.get(f"/v1/tasks/{task}/run")).json()["state"])


@pytest.mark.parametrize("state", ["cancelled", "done"])
async def test_a_state_that_ends_it_ends_its_tasks(client: Client, state: str) -> None:
    goal, [first, second] = await started(client)
    assert (await client.patch(f"/v1/tasks/{goal}", json={"state": state})).json()["state"] == state
    assert [await run_state(client, each) for each in (goal, first)] == ["cancelled"] * 2
    assert (await client.get(f"/v1/tasks/{second}/run")).status_code == 404, "the next one does not start"
    assert (await client.get(f"/v1/tasks/{goal}")).json()["state"] == state


async def test_the_answer_cancel_ends_its_tasks(client: Client) -> None:
    goal = await objective(client, "Move house")
    assert (await rest(client, goal))["breakpoint"]["schema"]["anyOf"][0] == {"enum": ["cancel"]}
    below = {"title": "sleep", "parent": goal, "archetype": "model"}
    first = (await client.post("/v1/tasks", json=below)).json()["id"]
    await client.post(f"/v1/tasks/{first}/run", json={"steps": ["ask: Where?"]})
    await rest(client, first)
    assert (await answer(client, goal, "cancel"))["state"] == "cancelled"
    assert await run_state(client, first) == "cancelled"
    assert await notices(client) == [], "nothing is asked any more"


async def test_its_deletion_ends_what_is_being_done_and_leaves_nothing(
    client: Client, settings: Settings, inference: ScriptedInference
) -> None:
    inference.delay = 3600.0
    goal = await objective(client, "Sleep: wash the car, never")
    await inference.begun.acquire()
    assert (await client.delete(f"/v1/tasks/{goal}")).status_code == 200
    await inference.cancelled.wait()
    database = apsw.Connection(str(settings.database_path))
    for table in ("tasks", "runs", "run_steps", "breakpoints", "notices", "jobs"):
        assert database.execute(f"SELECT count(*) FROM {table}").get == 0, table
    assert database.execute("SELECT count(*) FROM requests WHERE kind = 'tasks'").get == 0
    database.close()


@pytest.mark.parametrize("how", ["delete", "cancel", "patch"])
async def test_it_goes_on_after_the_end_of_a_task(client: Client, how: str) -> None:
    goal, [first, _] = await started(client)
    if how == "delete":
        assert (await client.delete(f"/v1/tasks/{first}")).status_code == 200
    elif how == "cancel":
        assert (await client.post(f"/v1/tasks/{first}/cancel")).status_code == 200
    else:
        assert (await client.patch(f"/v1/tasks/{first}", json={"state": "done"})).status_code == 200
    assert (await rest(client, goal))["state"] == "done"
    assert "it is over" in await notices(client)


async def test_a_pause_is_one_for_its_tasks_too(settings: Settings, inference: ScriptedInference) -> None:
    inference.delay = 3600.0
    async with in_process(settings, inference) as client:
        goal, [first, second] = await started(client, "Think: think: why?, notify me that: it is over")
        await inference.begun.acquire()
        assert (await client.post(f"/v1/tasks/{goal}/pause")).json()["state"] == "paused"
        await inference.cancelled.wait()
        assert await run_state(client, first) == "paused"
        inference.delay = 0.0
        assert (await client.post(f"/v1/tasks/{goal}/resume")).json()["state"] == "running"
        assert (await rest(client, goal))["state"] == "done"
        assert [await run_state(client, each) for each in (first, second)] == ["done"] * 2


async def test_a_task_that_asks_before_effects_does_so_in_any_objective(client: Client) -> None:
    goal = (await client.post("/v1/tasks", json={"title": "Shop", "level": "objective"})).json()["id"]
    below = {"title": "Add a task: buy milk", "parent": goal, "archetype": "hybrid"}
    first = (await client.post("/v1/tasks", json=below)).json()["id"]
    assert (await client.post(f"/v1/tasks/{goal}/run", json={"archetype": "model"})).status_code == 201
    waiting = await rest(
        client, goal, lambda run: bool(run["steps"]) and run["steps"][0]["state"] == "waiting"
    )
    assert waiting["state"] == "running"
    assert (await rest(client, first))["breakpoint"]["kind"] == "approval"


async def test_a_task_that_is_over_is_not_brought_back_by_an_answer(client: Client) -> None:
    task = await begin(client, "x", "ask: Which?")
    await rest(client, task)
    assert (await client.patch(f"/v1/tasks/{task}", json={"state": "cancelled"})).status_code == 200
    late: dict[str, Any] = (await client.post(f"/v1/tasks/{task}/answer", json={"answer": "this"})).json()
    assert late["error"]["code"] == "no_breakpoint"
    assert (await client.get(f"/v1/tasks/{task}")).json()["state"] == "cancelled"
    assert await notices(client) == []


async def test_an_objective_gets_no_steps_in_place_of_its_tasks(client: Client) -> None:
    goal = await objective(client, "Sleep: remind me in 9 hours to sleep, notify me that: never")
    reply = await client.post(f"/v1/tasks/{goal}/edit", json={"steps": ["notify: now"]})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "steps")
    assert len((await client.get(f"/v1/tasks/{goal}/run")).json()["steps"]) == 2
