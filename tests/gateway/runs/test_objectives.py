"""An objective runs its tasks one after the other, and asks for them if it has none."""

from __future__ import annotations

from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, in_process
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import answer, notices, rest


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
