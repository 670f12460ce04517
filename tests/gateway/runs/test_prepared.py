"""A task that does itself gets its checklist when it is made, and nothing of it is done before it is run."""

from __future__ import annotations

from typing import Any

from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, in_process
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import answer, notices, rest

KNOWN = "Remember that my home city is Turku, then notify me that it is kept"
UNKNOWN = "Buying a card belongs on the list"


def picks(inference: ScriptedInference) -> None:
    inference.script = lambda call: [f'"add_task: {UNKNOWN}"']


async def made(client: Client, title: str, archetype: str = "model", **more: Any) -> str:
    reply = await client.post("/v1/tasks", json={"title": title, "archetype": archetype, **more})
    assert (reply.status_code, reply.json()["state"]) == (201, "open"), reply.text
    return str(reply.json()["id"])


async def run(client: Client, task: str, **body: Any) -> dict[str, Any]:
    reply = await client.post(f"/v1/tasks/{task}/run", json=body)
    assert reply.status_code == 201, reply.text
    found: dict[str, Any] = reply.json()
    return found


async def titles(client: Client) -> list[str]:
    return [each["title"] for each in (await client.get("/v1/tasks")).json()["data"]]


async def test_the_rules_write_it_at_once(settings: Settings, inference: ScriptedInference) -> None:
    lines = ["remember: my home city is Turku", "notify: it is kept"]
    async with in_process(settings, inference) as client:
        task = await made(client, KNOWN)
        assert await titles(client) == [KNOWN, *lines]
        assert (await client.get(f"/v1/tasks/{task}")).json()["state"] == "open"
    async with in_process(settings, inference) as client:  # also after a restart
        shown = (await client.get(f"/v1/tasks/{task}/run")).json()
        assert (shown["state"], shown["planned"]) == ("paused", "words")
        assert (await client.get("/v1/facts")).json()["data"] == []
        await run(client, task)
        ended = await rest(client, task)
        assert (ended["state"], ended["planned"], ended["result"]) == ("done", "words", "told: it is kept")
    assert not inference.calls


async def test_the_model_writes_it_and_the_run_asks(client: Client, inference: ScriptedInference) -> None:
    picks(inference)
    task = await made(client, UNKNOWN, "hybrid")
    waiting = await rest(client, task)
    assert (waiting["state"], waiting["breakpoint"]["kind"]) == ("waiting", "confirm")
    assert len(await notices(client)) == 1
    assert (await run(client, task))["breakpoint"] == waiting["breakpoint"], "running it shows the question"
    assert (await answer(client, task, "yes"))["breakpoint"]["kind"] == "approval"
    assert (await answer(client, task, "yes"))["state"] == "done"


async def test_own_steps_take_its_place(client: Client, inference: ScriptedInference) -> None:
    picks(inference)
    for title in (KNOWN, UNKNOWN):
        task = await made(client, title)
        await rest(client, task)
        await run(client, task, steps=["notify: mine"])
        ended = await rest(client, task)
        assert (ended["planned"], [step["title"] for step in ended["steps"]]) == ("user", ["notify: mine"])
        task = await made(client, title)
        await rest(client, task)
        item = {"title": "Tell me that: also mine", "level": "checklist", "parent": task}
        assert (await client.post("/v1/tasks", json=item)).status_code == 201
        assert (await client.get(f"/v1/tasks/{task}")).json()["state"] == "open"
        await run(client, task)
        assert (await rest(client, task))["result"] == "told: also mine"
    assert not [text for text in await notices(client) if "makes of it" in text], "it is asked no more"
    assert (await client.get("/v1/facts")).json()["data"] == []


async def test_another_title_or_archetype_makes_another_one(
    client: Client, inference: ScriptedInference
) -> None:
    picks(inference)
    task = await made(client, UNKNOWN)
    await rest(client, task)
    await client.patch(f"/v1/tasks/{task}", json={"title": "Tell me that: all is well"})
    assert await titles(client) == ["Tell me that: all is well", "notify: all is well"]
    await client.patch(f"/v1/tasks/{task}", json={"archetype": "user"})
    assert (await client.get(f"/v1/tasks/{task}/run")).status_code == 404
    await client.patch(f"/v1/tasks/{task}", json={"archetype": "model"})
    await run(client, task)
    assert (await rest(client, task))["result"] == "told: all is well"
    await client.patch(f"/v1/tasks/{task}", json={"title": "Tell me that: it is over"})
    assert await titles(client) == ["Tell me that: it is over", "notify: all is well"], "what was done stays"


async def test_words_that_cannot_run_say_so_when_they_are_run(client: Client) -> None:
    task = await made(client, "Remind me on 2020-01-01 to sleep")
    refused = await client.post(f"/v1/tasks/{task}/run", json={})
    assert refused.status_code == 400
    assert "hour" in refused.json()["error"]["message"]
