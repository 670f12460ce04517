"""Every route that names something by its id, walked by two owners: what is somebody else's does not exist."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.api.conversations.bodies import Conversion, NewMessageBody
from gateway.api.endpoint import Endpoint
from gateway.api.facts import FactChange
from gateway.api.tasks import TaskChange
from gateway.app import ENDPOINTS
from gateway.settings import Settings
from tests.gateway.api.conftest import Client, in_process, make_key
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.api.test_conversations import say, start, talker

# What is nobody's: the model is the same for all.
SHARED = {"/v1/models/{id:path}"}
BODIES: dict[Any, dict[str, Any]] = {
    NewMessageBody: {"text": "x"},
    Conversion: {},
    FactChange: {"text": "x"},
    TaskChange: {"title": "x"},
}
WALKED = [each for each in ENDPOINTS if "{" in each.path and each.path not in SHARED]
LISTS = [
    each
    for each in ENDPOINTS
    if each.method == "GET" and each.path in ("/v1/conversations", "/v1/facts", "/v1/tasks")
]


@pytest.fixture
def inference() -> ScriptedInference:
    return ScriptedInference(talker)


async def owned(client: Client) -> dict[str, str]:
    """One of each kind, by the beginning of its routes."""
    conversation = await start(client, title="Ann's")
    await say(client, conversation, "secret of Ann")
    fact = await client.post("/v1/facts", json={"key": "pet", "text": "Has a cat."})
    task = await client.post("/v1/tasks", json={"title": "secret task"})
    return {
        "/v1/conversations/{id}": conversation,
        "/v1/facts/{id}": fact.json()["id"],
        "/v1/tasks/{id}": task.json()["id"],
    }


async def send(client: Client, endpoint: Endpoint, key: str, name: str) -> tuple[int, Any]:
    body = {"json": BODIES[endpoint.body]} if endpoint.accepts else {}
    reply = await client.request(
        endpoint.method,
        endpoint.path.replace("{id}", name),
        headers={"Authorization": f"Bearer {key}"},
        **body,
    )
    error = dict(reply.json()["error"]) if reply.status_code >= 400 else {}
    error.pop("request_id", None)
    return reply.status_code, msgspec.json.encode(error).decode().replace(name, "…")


async def seen(client: Client, key: str, names: dict[str, str]) -> list[Any]:
    """All that an owner can read of what is theirs."""
    headers = {"Authorization": f"Bearer {key}"}
    paths = [*(each.path for each in LISTS), *(path.replace("{id}", name) for path, name in names.items())]
    one = names["/v1/conversations/{id}"]
    paths += [f"/v1/conversations/{one}/{part}" for part in ("messages", "summaries", "context")]
    return [(await client.get(path, headers=headers)).json() for path in paths]


async def test_what_is_somebody_elses_does_not_exist(
    settings: Settings, inference: ScriptedInference
) -> None:
    ann, bob = make_key(settings, "ann", "user"), make_key(settings, "bob", "user")
    async with in_process(settings, inference) as client:
        client.headers["Authorization"] = f"Bearer {ann}"
        names = await owned(client)
        before = await seen(client, ann, names)
        for endpoint in WALKED:
            [name] = [name for path, name in names.items() if endpoint.path.startswith(path)]
            foreign = await send(client, endpoint, bob, name)
            missing = await send(client, endpoint, bob, "none")
            assert foreign[0] == 404, (endpoint.method, endpoint.path)
            assert foreign == missing, "nobody can tell what others have"
            assert (await send(client, endpoint, ann, "none"))[0] == 404, (endpoint.method, endpoint.path)
        assert await seen(client, ann, names) == before, "nothing was changed"
        client.headers["Authorization"] = f"Bearer {bob}"
        for endpoint in LISTS:
            assert (await client.get(endpoint.path)).json() == {"data": [], "next": None}


def test_the_walk_misses_no_route() -> None:
    """A new kind of thing with an id needs a place in ``owned``."""
    known = ("/v1/conversations/{id}", "/v1/facts/{id}", "/v1/tasks/{id}")
    assert [each.path for each in WALKED if not each.path.startswith(known)] == []
    walked = {(each.method, each.path.rpartition("}")[2]) for each in WALKED}
    parts = {"/messages", "/summaries", "/context", "/events"}
    assert {("GET", part) for part in parts} <= walked
    assert {("POST", part) for part in ("/compact", "/convert", "/rollover", "/undo", "/messages")} <= walked


async def test_ids_of_messages_are_no_way_to_learn_of_others(
    settings: Settings, inference: ScriptedInference
) -> None:
    ann, bob = make_key(settings, "ann", "user"), make_key(settings, "bob", "user")
    async with in_process(settings, inference) as client:
        for key in (ann, bob):
            client.headers["Authorization"] = f"Bearer {key}"
            name = await start(client)
            said = await say(client, name, "Hello", id="line-1")
            assert said["accepted"]["id"] == "line-1"
