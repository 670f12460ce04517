"""Things of another owner do not exist, on every route with an id."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from gateway.api.http.endpoint import Endpoint
from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, in_process, make_key
from tests.gateway.api.conversations.test_conversations import say, start, text_of
from tests.gateway.api.routes import ENDPOINTS, route_id
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
# These ids have no owner.
SHARED = ("/v1/models/{id:path}", "/assets/{name}", "/v1/projects/{id}")
ROUTES = [endpoint for endpoint in ENDPOINTS if "{" in endpoint.path and not endpoint.path.startswith(SHARED)]
# A valid body for each, so that an invalid body does not hide the check of the id.
BODIES: dict[str, dict[str, Any]] = {
    "/v1/assistants/{id}": {"biography": "Mallory's"},
    "/v1/conversations/{id}": {"title": "Mallory's"},
    "/v1/conversations/{id}/messages": {"text": "x"},
    "/v1/conversations/{id}/messages/{message}": {"failed": True},
    "/v1/conversations/{id}/rounds/{round}": {"failed": True},
    "/v1/conversations/{id}/convert": {},
    "/v1/conversations/{id}/keep": {"message": "x"},
    "/v1/facts/{id}": {"text": "Mallory's."},
    "/v1/tasks/{id}": {"title": "Mallory's", "state": "done"},
    "/v1/tasks/{id}/run": {"archetype": "model", "steps": ["ask: Mallory's?"]},
    "/v1/tasks/{id}/answer": {"answer": "Mallory's"},
    "/v1/tasks/{id}/edit": {"steps": ["ask: Mallory's?"]},
    "/v1/tasks/{id}/retry": {"step": 1},
    "/v1/tasks/{id}/replay": {"request": "run-000000000000"},
}
SECRET = "xylophone"  # in all of Ann's data


class Owners:
    """Ann's things by collection, and a client for each owner."""

    def __init__(self, client: Client, keys: dict[str, str]) -> None:
        self.client = client
        self._keys = keys
        self.ids: dict[str, list[str]] = {}

    async def ask(self, who: str, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {"Authorization": f"Bearer {self._keys[who]}", "X-Request-ID": "same"}
        return await self.client.request(method, path, headers=headers, **more)

    async def make(self, path: str, **body: Any) -> str:
        reply = await self.ask("ann", "POST", path, **({} if path.endswith("/rollover") else {"json": body}))
        assert reply.status_code == 201, reply.text
        made = str(reply.json()["id"])
        self.ids.setdefault("/" + "/".join(path.split("/")[1:3]), []).append(made)
        return made

    async def fill(self) -> None:
        """Create things in every state."""
        wendy = await self.make("/v1/assistants", name=f"Wendy {SECRET}", biography=SECRET)
        talk = await self.make("/v1/conversations", title=SECRET, assistant=wendy)
        await self.ask(
            "ann", "POST", f"/v1/conversations/{talk}/messages", json={"text": SECRET, "id": "m-1"}
        )
        await self.make(f"/v1/conversations/{talk}/rollover")
        await self.make("/v1/facts", key="pet", text=f"Has a {SECRET}.")
        ended = await self.make("/v1/facts", key="food", text=f"Eats a {SECRET}.")
        assert (await self.ask("ann", "DELETE", f"/v1/facts/{ended}")).status_code == 200
        said = {"model": "default", "input": SECRET}
        reply = await self.ask("ann", "POST", "/v1/responses", json=said)
        self.ids["/v1/responses"] = [reply.json()["id"]]
        objective = await self.make("/v1/tasks", title=SECRET, level="objective", day="2026-11-20")
        task = await self.make("/v1/tasks", title=SECRET, parent=objective, day="2026-11-20")
        await self.make("/v1/tasks", title=SECRET, level="checklist", parent=task)
        run = {"archetype": "model", "steps": [f"ask: {SECRET}?"]}
        assert (await self.ask("ann", "POST", f"/v1/tasks/{task}/run", json=run)).status_code == 201
        await self.until(task, "waiting")
        other = await self.make("/v1/tasks", title=f"A {SECRET} or two", day="2026-11-20")
        approved = {"archetype": "hybrid", "steps": [f"add_task: {SECRET} again"]}
        assert (await self.ask("ann", "POST", f"/v1/tasks/{other}/run", json=approved)).status_code == 201
        await self.until(other, "waiting")
        await self.ask("ann", "POST", f"/v1/tasks/{other}/answer", json={"answer": "always"})
        await self.until(other, "done")
        approvals = (await self.ask("ann", "GET", "/v1/approvals")).json()["data"]
        self.ids["/v1/approvals"] = [str(each["id"]) for each in approvals]

    async def until(self, task: str, state: str) -> None:
        """Wait until a run is in a state in which it changes no more."""

        async def reached() -> bool:
            return (await self.ask("ann", "GET", f"/v1/tasks/{task}/run")).json()["state"] == state

        await until(reached)

    async def everything(self) -> list[str]:
        """Everything that Ann can read, except values that change by themselves."""
        paths = ["/v1/assistants", "/v1/conversations?archived=true", "/v1/facts?ended=true", "/v1/tasks"]
        for endpoint in ROUTES:
            if endpoint.method == "GET" and not endpoint.path.endswith("/events"):
                paths += [
                    endpoint.path.replace("{id}", each)
                    for each in self.ids[collection(endpoint)]
                    if not endpoint.path.endswith("/run") or each == self.ids["/v1/tasks"][1]
                ]
        replies = [await self.ask("ann", "GET", path) for path in paths]
        assert all(reply.status_code == 200 for reply in replies)
        return [reply.text for reply in replies]


def collection(endpoint: Endpoint) -> str:
    return endpoint.path.partition("/{")[0]


def body_of(path: str, method: str) -> dict[str, Any]:
    """What the request needs to be valid: a body, or a query."""
    if method == "DELETE" and path.endswith("/messages"):
        return {"params": {"speaker": "Ann"}}
    return {"json": BODIES[path]} if path in BODIES and method in ("POST", "PUT", "PATCH") else {}


@pytest.fixture
async def owners(settings: Settings, inference: ScriptedInference) -> AsyncIterator[Owners]:
    keys = {
        name: make_key(settings, name, "admin" if name == "root" else "user")
        for name in ("ann", "bob", "root")
    }
    async with _filled(settings, inference, keys) as made:
        yield made


@asynccontextmanager
async def _filled(
    settings: Settings, inference: ScriptedInference, keys: dict[str, str]
) -> AsyncIterator[Owners]:
    async with in_process(settings, inference) as client:
        made = Owners(client, keys)
        await made.fill()
        yield made


async def test_every_id_of_somebody_else_with_every_method(owners: Owners) -> None:
    """Also for admins. The reply equals, byte for byte, that for an unknown id."""
    before = await owners.everything()
    paths = sorted({endpoint.path for endpoint in ROUTES})
    served = {(endpoint.method, endpoint.path) for endpoint in ROUTES}
    served |= {("HEAD", path) for method, path in served if method == "GET"}
    checked = 0
    for path in paths:
        ids = owners.ids[path.partition("/{")[0]]  # a KeyError: extend `fill`
        for method in METHODS:
            for who in ("bob", "root"):
                for each in ids:
                    unknown = "9" * 9 if each.isdigit() else "0" * len(each)
                    reply, none = [
                        await owners.ask(who, method, path.replace("{id}", name), **body_of(path, method))
                        for name in (each, unknown)
                    ]
                    expected = 404 if (method, path) in served else 405
                    assert reply.status_code == expected, (who, method, path, reply.text)
                    said = re.sub(rf"(?<![a-z]){each}\b", "", reply.text)
                    assert said == none.text.replace(unknown, "")
                    assert SECRET not in reply.text
                    checked += 1
    assert checked > 300
    assert await owners.everything() == before


async def test_bodies_of_endpoints_are_known() -> None:
    """A new route with an id and a body needs a valid body here."""
    needing = {endpoint.path for endpoint in ROUTES if endpoint.accepts}
    assert needing == set(BODIES), "add a good body"


async def test_ids_of_another_kind_are_unknown(owners: Owners) -> None:
    for endpoint in ROUTES:
        for kind, ids in owners.ids.items():
            if kind != collection(endpoint):
                for each in ids:
                    path = endpoint.path.replace("{id}", each)
                    reply = await owners.ask(
                        "ann", endpoint.method, path, **body_of(endpoint.path, endpoint.method)
                    )
                    assert reply.status_code == 404, route_id(endpoint)


async def test_lists_contain_only_the_owners_things(owners: Owners) -> None:
    for who in ("bob", "root"):
        for path in (
            "/v1/conversations?archived=true",
            "/v1/facts?ended=true",
            "/v1/tasks",
            "/v1/tasks?state=open",
        ):
            assert (await owners.ask(who, "GET", path)).json()["data"] == [], path


async def test_ids_in_bodies_are_checked_too(owners: Owners) -> None:
    objective, task, item, *_ = owners.ids["/v1/tasks"]
    before = await owners.everything()
    for level, parent in (("checklist", task), ("task", objective), ("checklist", item)):
        for name in (parent, "T-20991231-09"):
            body = {"title": "x", "level": level, "parent": name}
            reply = await owners.ask("bob", "POST", "/v1/tasks", json=body)
            assert reply.status_code in (400, 404), reply.text
            assert SECRET not in reply.text
    for name in (*owners.ids["/v1/responses"], "resp_none"):
        body = {"model": "default", "input": "x", "previous_response_id": name}
        reply = await owners.ask("bob", "POST", "/v1/responses", json=body)
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, "previous_response_not_found")
    assert await owners.everything() == before


async def test_equal_ids_are_different_things(owners: Owners, inference: ScriptedInference) -> None:
    """Tasks are numbered per owner, and callers choose the ids of messages and requests."""
    before = await owners.everything()
    body = {"title": "Bob's", "day": "2026-11-20"}
    task = (await owners.ask("bob", "POST", "/v1/tasks", json=body)).json()["id"]
    assert task in owners.ids["/v1/tasks"]
    assert (await owners.ask("bob", "PATCH", f"/v1/tasks/{task}", json={"state": "done"})).status_code == 200
    assert (await owners.ask("bob", "DELETE", f"/v1/tasks/{task}")).status_code == 200
    said = {"model": "default", "input": "Bob's"}
    response = (await owners.ask("bob", "POST", "/v1/responses", json=said)).json()["id"]
    assert response in owners.ids["/v1/responses"]
    assert (await owners.ask("bob", "DELETE", f"/v1/responses/{response}")).status_code == 200
    talk = (await owners.ask("bob", "POST", "/v1/conversations", json={})).json()["id"]
    answer = await owners.ask(
        "bob", "POST", f"/v1/conversations/{talk}/messages", json={"text": "Hi", "id": "m-1"}
    )
    assert answer.status_code == 200
    assert json.dumps(answer.json()).count(SECRET) == 0
    assert await owners.everything() == before


async def test_bobs_prompts_contain_nothing_of_anns(owners: Owners, inference: ScriptedInference) -> None:
    ann = {call.owner for call in inference.calls}
    assert ann and "" not in ann
    owners.client.headers["Authorization"] = f"Bearer {owners._keys['bob']}"
    await say(owners.client, await start(owners.client), "What pet do I have, and what is there to do?")
    calls = [call for call in inference.calls if call.owner not in ann]  # jobs of Ann may still run
    assert calls
    assert not any(SECRET in text_of(call) for call in calls)
