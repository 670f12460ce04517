"""The OpenAPI document is complete, valid, and true of real replies."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from msgspec import Struct

from gateway.api.http.endpoint import JSON
from gateway.api.openapi import document
from gateway.inference.interface import HostHealth, ModelInfo
from gateway.server.app import ENDPOINTS
from tests.gateway.api.conftest import Client
from tests.gateway.api.scripted import ScriptedInference

DOCUMENT = document(ENDPOINTS)


def test_every_endpoint_is_described() -> None:
    described = {
        (method.upper(), path) for path, operations in DOCUMENT["paths"].items() for method in operations
    }
    assert described == {(e.method, e.path.replace(":path", "")) for e in ENDPOINTS if e.described}
    hidden = ["/v1/moderations", "/mcp", "/", "/assets/{name}"]
    assert [e.path for e in ENDPOINTS if not e.described] == hidden, "what is refused, MCP, and the page"
    operations = [operation for path in DOCUMENT["paths"].values() for operation in path.values()]
    assert all(operation["summary"] for operation in operations)
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names))
    for endpoint in filter(lambda endpoint: endpoint.described, ENDPOINTS):
        assert endpoint.reply is not None or endpoint.streams or endpoint.path == "/metrics", endpoint.path
        bare = (
            "/compact",
            "/rollover",
            "/undo",
            "/warm",
            "/unload",
            "/typing",
            "/pause",
            "/resume",
            "/cancel",
            "/notices",
        )
        optional_body = endpoint.path.endswith(bare)
        assert endpoint.method not in ("POST", "PATCH") or endpoint.body is not None or optional_body, (
            endpoint.path
        )


def test_replies_are_described_by_the_types_that_make_them() -> None:
    open_ended = [
        endpoint.path
        for endpoint in ENDPOINTS
        if endpoint.reply is not None
        and not (isinstance(endpoint.reply, type) and issubclass(endpoint.reply, Struct))
    ]
    assert open_ended == ["/slots", "/openapi.json"]  # a list of structs, and any object


def test_schemas_are_valid_and_references_lead_somewhere() -> None:
    for name, schema in DOCUMENT["components"]["schemas"].items():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
        assert name.replace("_", "").replace(".", "").isalnum(), name
    for reference in _references(DOCUMENT):
        assert reference.removeprefix("#/components/schemas/") in DOCUMENT["components"]["schemas"], reference


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = (
            [value["$ref"]]
            if isinstance(value.get("$ref"), str) and value["$ref"].startswith("#/comp")
            else []
        )
        return own + [found for each in value.values() for found in _references(each)]
    return [found for each in value for found in _references(each)] if isinstance(value, list) else []


def check(reply: Any, method: str, path: str) -> None:
    """Check the reply's status and JSON body against the document."""
    described = DOCUMENT["paths"][path][method.lower()]["responses"]
    assert str(reply.status_code) in described, (method, path, reply.status_code, reply.text)
    content = described[str(reply.status_code)]["content"]
    kind = reply.headers["content-type"].partition(";")[0]
    assert kind in content, (method, path, kind)
    if kind == JSON:
        schema = {**content[JSON]["schema"], "components": DOCUMENT["components"]}
        jsonschema_rs.validate(schema, reply.json())


QUERIES = {e.path: e for e in ENDPOINTS if e.method == "GET" and e.query is not None}
# The others are questions with one answer.
LISTS = [path for path in QUERIES if not path.startswith(("/v1/projects/", "/wiki/"))]


def test_queries_are_described_by_the_types_that_validate_them() -> None:
    lists = {e.path for e in ENDPOINTS if e.method == "GET" and {"data", "next"} <= set(_fields(e.reply))}
    lists.add("/v1/responses/{id}/input_items")  # in OpenAI's form
    assert lists == set(LISTS), "every list has a query, and no other GET"
    for path, endpoint in QUERIES.items():
        parameters = DOCUMENT["paths"][path]["get"]["parameters"]
        described = {each["name"]: each["schema"] for each in parameters if each["in"] == "query"}
        assert set(described) == set(_fields(endpoint.query))
        for schema in described.values():
            jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
            assert _references(schema) == []


def _fields(kind: Any) -> tuple[str, ...]:
    fields: tuple[str, ...] = getattr(kind, "__struct_fields__", ())
    return fields


@pytest.mark.parametrize("path", [path for path in LISTS if "{" not in path])
async def test_queries_are_held_to_their_description(client: Client, path: str) -> None:
    parameters = [each for each in DOCUMENT["paths"][path]["get"]["parameters"] if each["in"] == "query"]
    described = {each["name"] for each in parameters}
    needed = {each["name"]: "x" for each in parameters if each["required"]}
    wrong = {
        "q": ("",),
        "conversation": ("", "a b", "a/b"),
        "limit": ("0", "201", "x", "", "1.5", "-1"),
        "before": ("x", "-1", "nan", "inf", "1e999", "9" * 40, "", "~", "1~", "~x", "1e400~x", "2026-01-01~"),
        "archived": ("maybe", "", "2"),
        "ended": ("yes please", ""),
        "day": ("2026-13-01", "yesterday", "2026-1-1", "today\n"),
        "state": ("closed", ""),
        "colour": ("blue",),
    }
    for name in sorted(described | {"colour"}):
        for value in wrong[name]:
            reply = await client.get(path, params={**needed, name: value})
            assert (reply.status_code, reply.json()["error"]["param"]) == (400, name), (
                name,
                value,
                reply.text,
            )
    reply = await client.get(path, params={**needed, "limit": ["1", "2"]})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "limit")
    for good in ("200", "1"):
        assert (await client.get(path, params={**needed, "limit": good})).status_code == 200


MESSAGES = [{"role": "user", "content": "x"}]
CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("GET", "/openapi.json", {}),
    ("GET", "/healthz", {}),
    ("GET", "/readyz", {}),
    ("GET", "/metrics", {}),
    ("GET", "/admin/health", {}),
    ("POST", "/admin/host/warm", {}),
    ("POST", "/ask", {"json": {"question": "Who created Befunge?"}}),
    ("POST", "/ask", {"content": b"Who?", "headers": {"Content-Type": "text/plain"}}),
    ("POST", "/ask", {"json": {}}),
    ("POST", "/v1/chat/completions", {"json": {"messages": [{"role": "user", "content": "hi"}]}}),
    ("POST", "/v1/chat/completions", {"json": {"messages": []}}),
    ("GET", "/v1/models", {}),
    ("POST", "/admin/host/unload", {}),
    ("GET", "/v1/conversations", {}),
    ("GET", "/v1/conversations/search", {"params": {"q": "x"}}),
    ("GET", "/v1/projects", {}),
    ("GET", "/v1/facts", {}),
    ("GET", "/v1/tasks", {}),
    ("POST", "/v1/facts", {"json": {"key": "pet", "text": "A cat."}}),
    ("POST", "/v1/tasks", {"json": {"title": "x"}}),
    ("GET", "/api/version", {}),
    ("GET", "/api/tags", {}),
    ("GET", "/api/ps", {}),
    ("POST", "/api/show", {"json": {"model": "none"}}),
    ("POST", "/v1/messages", {"json": {"model": "default", "max_tokens": 5, "messages": MESSAGES}}),
    ("POST", "/v1/messages", {"json": {"model": "default"}}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "request_"), CALLS, ids=[f"{m} {p} {n}" for n, (m, p, _) in enumerate(CALLS)]
)
async def test_replies_are_as_described(
    client: Client, method: str, path: str, request_: dict[str, Any]
) -> None:
    check(await client.request(method, path, **request_), method, path)


async def test_conversations_are_as_described(client: Client, inference: ScriptedInference) -> None:
    base = "/v1/conversations"
    made = await client.post(base, json={"title": "t"})
    check(made, "POST", base)
    name = made.json()["id"]
    one = f"{base}/{name}"
    check(await client.post(f"{one}/messages", json={"text": "Hello"}), "POST", f"{base}/{{id}}/messages")
    for part in ("", "/messages", "/rounds", "/summaries", "/context"):
        check(await client.get(f"{one}{part}"), "GET", f"{base}/{{id}}{part}")
    check(await client.patch(one, json={"title": "u", "policy": "rounds"}), "PATCH", f"{base}/{{id}}")
    check(
        await client.patch(f"{one}/rounds/1", json={"failed": True}),
        "PATCH",
        f"{base}/{{id}}/rounds/{{round}}",
    )
    for part in ("/compact", "/convert", "/rollover"):
        check(await client.post(f"{one}{part}"), "POST", f"{base}/{{id}}{part}")
    check(await client.delete(one), "DELETE", f"{base}/{{id}}")
    check(await client.get(one), "GET", f"{base}/{{id}}")


async def test_assistants_are_as_described(client: Client) -> None:
    base = "/v1/assistants"
    check(await client.post(base, json={"name": "Wendy", "biography": "A bard."}), "POST", base)
    check(await client.post(base, json={"name": "Wendy"}), "POST", base)
    one = f"{base}/Wendy"
    check(await client.patch(one, json={"biography": "A guard."}), "PATCH", f"{base}/{{id}}")
    check(await client.get(base), "GET", base)
    for part in ("", "/biographies", "/reflections"):
        check(await client.get(f"{one}{part}"), "GET", f"{base}/{{id}}{part}")
    check(await client.delete(one), "DELETE", f"{base}/{{id}}")
    check(await client.get(one), "GET", f"{base}/{{id}}")


async def test_a_broken_host_and_a_loaded_model_are_as_described(
    client: Client, inference: ScriptedInference
) -> None:
    for state in (
        HostHealth(state="broken", problem="3 crashes in 60 s", retry_after=20.0),
        HostHealth(
            state="ready",
            pid=1,
            rss_bytes=5,
            uptime_seconds=1.5,
            idle_seconds_left=3.0,
            model=ModelInfo(name="scripted", n_ctx=512, n_ctx_train=8192),
            stats={"kv_used": 128, "kv_size": 512, "prefill_tokens_per_second": 40},
        ),
    ):
        inference.state = state
        check(await client.get("/admin/health"), "GET", "/admin/health")
    for name in ("default", "nobody"):
        check(await client.get(f"/v1/models/{name}"), "GET", "/v1/models/{id}")
