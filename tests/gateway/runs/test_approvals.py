"""The answer `always`: it binds to the pattern that is shown, and to the tool as it describes itself."""

from __future__ import annotations

from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, in_process, make_key
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import answer, begin, notices, rest
from tests.gateway.runs.test_outside import bad, configured


async def hybrid(client: Client, *steps: str) -> str:
    return await begin(client, "x", *steps, archetype="hybrid")


async def calls(client: Client) -> list[str]:
    return [each["calls"] for each in (await client.get("/v1/approvals")).json()["data"]]


async def test_always_holds_for_the_pattern_that_is_shown_until_it_is_revoked(client: Client) -> None:
    task = await hybrid(client, "ask: Where?", "add_task: visit {{1}} (today*)")
    await rest(client, task)
    run = await answer(client, task, "Turku")
    assert run["breakpoint"]["question"].endswith(
        "`always` approves every call like add_task(title='visit {{*}} (today*)')."
    )
    assert (await answer(client, task, "always"))["state"] == "done"
    assert await calls(client) == ["add_task(title='visit {{*}} (today*)')"]
    same = await hybrid(client, "add_task: visit Oulu (today*)")
    assert (await rest(client, same))["state"] == "done"
    for other in ("visit Oulu (today)", "don't visit Oulu (today*)", "visit Oulu (today*) never"):
        task = await hybrid(client, f"add_task: {other}")
        assert (await rest(client, task))["breakpoint"]["kind"] == "approval", other
    other = await hybrid(client, "remember: visit Oulu (today*)")
    assert (await rest(client, other))["breakpoint"]["kind"] == "approval", "another tool"
    [known] = (await client.get("/v1/approvals")).json()["data"]
    assert (await client.delete(f"/v1/approvals/{known['id']}")).status_code == 200
    assert (await client.delete(f"/v1/approvals/{known['id']}")).status_code == 404
    assert (await client.delete("/v1/approvals/x")).status_code == 404
    again = await hybrid(client, "add_task: visit Vaasa (today*)")
    assert (await rest(client, again))["breakpoint"]["kind"] == "approval"


async def test_an_approval_is_the_owners_and_outlives_a_restart(
    settings: Settings, inference: ScriptedInference
) -> None:
    mine, theirs = (make_key(settings, name, "user") for name in ("ann", "bob"))
    async with in_process(settings, inference) as client:
        client.headers["Authorization"] = f"Bearer {mine}"
        task = await hybrid(client, "add_task: buy milk")
        await rest(client, task)
        await answer(client, task, "always")
    async with in_process(settings, inference) as client:
        client.headers["Authorization"] = f"Bearer {mine}"
        assert (await rest(client, await hybrid(client, "add_task: buy milk")))["state"] == "done"
        [known] = (await client.get("/v1/approvals")).json()["data"]
        client.headers["Authorization"] = f"Bearer {theirs}"
        assert await calls(client) == []
        assert (await client.delete(f"/v1/approvals/{known['id']}")).status_code == 404
        task = await hybrid(client, "add_task: buy milk")
        assert (await rest(client, task))["breakpoint"]["kind"] == "approval"


async def test_people_of_one_key_have_tasks_of_their_own(client: Client) -> None:
    client.headers["X-Hearth-Person"] = "net/account:ann"
    task = await hybrid(client, "add_task: buy milk")
    await rest(client, task)
    client.headers["X-Hearth-Person"] = "net/account:bob"
    assert (await client.post(f"/v1/tasks/{task}/answer", json={"answer": "yes"})).status_code == 404
    assert (await client.get("/v1/runs")).json()["data"] == await notices(client) == []
    client.headers["X-Hearth-Person"] = "an n"
    assert (await client.get("/v1/runs")).status_code == 400
    client.headers["X-Hearth-Person"] = "net/account:ann"
    assert (await answer(client, task, "skip"))["state"] == "done"
    [run] = (await client.get("/v1/runs?limit=1")).json()["data"]
    assert run["task"] == task


async def test_it_does_not_hold_for_a_tool_that_describes_itself_otherwise(
    settings: Settings, inference: ScriptedInference
) -> None:
    file = settings.data_dir.parent / "description"
    file.write_text("Say a text.")
    server = bad("told", str(file), risks=("untrusted", "private", "effect"))
    async with in_process(configured(settings, server), inference) as client:
        task = await begin(client, "x", "odd.say: one")
        await rest(client, task)
        assert (await answer(client, task, "always"))["result"] == "said one"
        assert (await rest(client, await begin(client, "x", "odd.say: one")))["state"] == "done"
        file.write_text("Send a text to everybody.")
    async with in_process(configured(settings, server), inference) as client:
        task = await begin(client, "x", "odd.say: one")
        assert (await rest(client, task))["breakpoint"]["kind"] == "approval"
