"""The application with a scripted model, and what tests of runs have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.config.settings import Settings
from gateway.inference.interface import GenerateCall
from tests.gateway.api.conftest import Client, changed, client, pytest_generate_tests, settings
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

__all__ = ["client", "pytest_generate_tests", "settings"]


def fine(call: GenerateCall) -> list[str]:
    return ["It is fine."]


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(fine)


async def begin(client: Client, title: str, *steps: str, archetype: str = "model") -> str:
    """Make a task and start it; returns its id."""
    new = {"title": title} | ({} if steps else {"archetype": archetype})
    made = await client.post("/v1/tasks", json=new)
    body = {"steps": list(steps), "archetype": archetype} if steps else {}
    task = str(made.json()["id"])
    reply = await client.post(f"/v1/tasks/{task}/run", json=body)
    assert reply.status_code == 201, reply.text
    return task


def rests(run: dict[str, Any]) -> bool:
    return run["state"] != "running"


async def rest(client: Client, task: str, wanted: Callable[[dict[str, Any]], bool] = rests) -> dict[str, Any]:
    """The run once it is as ``wanted``: by default, once it has ended or waits."""

    async def found() -> dict[str, Any] | None:
        run: dict[str, Any] = (await client.get(f"/v1/tasks/{task}/run")).json()
        return run if wanted(run) else None

    return await until(found)


async def answer(client: Client, task: str, value: object, **more: Any) -> dict[str, Any]:
    """Answer, and wait until the run rests again."""
    reply = await client.post(f"/v1/tasks/{task}/answer", json={"answer": value, **more})
    assert reply.status_code == 200, reply.text
    return await rest(client, task)


async def notices(client: Client) -> list[str]:
    return [each["text"] for each in (await client.post("/v1/notices")).json()["data"]]


def with_limits(settings: Settings, **values: Any) -> Settings:
    return changed(settings, "tasks", **values)
