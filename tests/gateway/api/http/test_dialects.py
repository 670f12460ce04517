"""Errors have the envelope of the client's dialect, wherever they arise; no body breaks a handler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gateway.base.errors import OverloadedError
from gateway.config.settings import ModelSettings, Settings, WikiSettings
from tests.gateway.api.conftest import Client, changed, in_process, make_key
from tests.gateway.api.scripted import ScriptedInference

OLLAMA = ("/api/chat", "/api/generate", "/api/show", "/api/embed")
ANTHROPIC = ("/v1/messages", "/v1/messages/count_tokens")
HI = [{"role": "user", "content": "hi"}]


def message_of(path: str, body: dict[str, Any]) -> tuple[str, str | None]:
    """The message of an error in the envelope of the path, and its type if it has one."""
    if path.startswith("/api/"):
        assert set(body) == {"error", "code", "request_id"}
        return str(body["error"]), None
    assert set(body) == {"type", "error", "request_id"}
    assert body["type"] == "error"
    assert set(body["error"]) == {"type", "message"}
    return str(body["error"]["message"]), body["error"]["type"]


@pytest.mark.parametrize("path", [*OLLAMA, *ANTHROPIC])
async def test_errors_have_the_envelope_of_the_dialect(
    settings: Settings, inference: ScriptedInference, path: str
) -> None:
    settings = changed(settings, "server", max_body_bytes=5000)
    async with in_process(settings, inference) as client:
        typed = {"Content-Type": "application/json"}
        seen = {}
        for request in (
            client.build_request("DELETE", path),
            client.build_request("POST", path, content="x", headers={"Content-Type": "text/plain"}),
            client.build_request("POST", path, content="{", headers=typed),
            client.build_request("POST", path, content=b" " * 6000, headers=typed),
            client.build_request("POST", path, json={"model": "gpt-9", "messages": HI}),
            client.build_request("POST", path, headers={**typed, "Host": "evil.example"}),
            client.build_request("POST", path, headers={**typed, "Origin": "http://evil.example"}),
        ):
            reply = await client.send(request)
            message, kind = message_of(path, reply.json())
            assert message
            assert reply.json()["request_id"] == reply.headers["x-request-id"]
            seen[reply.status_code] = kind
        make_key(settings, "me", "user")
        locked = await client.post(path, json={})
        message_of(path, locked.json())
        assert (locked.status_code, locked.headers["www-authenticate"]) == (401, "Bearer")
    assert {405, 415, 400, 413, 421, 403} <= set(seen)
    if path in ANTHROPIC:
        assert (seen[413], seen[403]) == ("request_too_large", "permission_error")


async def test_unknown_paths_too(client: Client) -> None:
    message, _ = message_of("/api/push", (await client.post("/api/push", json={})).json())
    assert "/api/push" in message
    reply = await client.post("/v1/messages/batches", json={})
    assert message_of("/v1/messages/batches", reply.json())[1] == "not_found_error"
    assert reply.headers["request-id"] == reply.headers["x-request-id"]
    assert "request-id" not in (await client.get("/nothing")).headers


async def test_overload(client: Client, inference: ScriptedInference) -> None:
    inference.error = OverloadedError("the queue is full", retry_after=2)
    bodies = {
        "/api/chat": {"model": "default", "messages": HI},
        "/api/generate": {"model": "default", "prompt": "hi", "stream": False},
        "/v1/messages": {"model": "default", "max_tokens": 5, "messages": HI, "stream": True},
    }
    for path, body in bodies.items():
        reply = await client.post(path, json=body)
        assert (reply.status_code, reply.headers["retry-after"]) == (503, "2")
        assert message_of(path, reply.json())[0] == "the queue is full"


async def test_a_browser_of_a_configured_origin_may_send_what_its_sdk_sends(
    settings: Settings, inference: ScriptedInference
) -> None:
    settings = changed(settings, "server", allowed_origins=["https://app.example"])
    asked = "anthropic-version, x-api-key, x-stainless-lang, content-type"
    headers = {
        "Origin": "https://app.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": asked,
    }
    async with in_process(settings, inference) as client:
        allowed = (await client.options("/v1/messages", headers=headers)).headers[
            "access-control-allow-headers"
        ]
        reply = await client.post("/v1/messages", json={}, headers={"Origin": "https://app.example"})
    assert {"Authorization", "*"} <= {name.strip() for name in allowed.split(",")}
    assert "request-id" in reply.headers["access-control-expose-headers"].lower()


# Mostly valid values, so that most of a body passes and one field fails.
ODD = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
TURN = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool", "x"]), "content": st.just("hi") | ODD},
    optional={
        "tool_calls": st.just([{"function": {"name": "f", "arguments": {}}}]) | ODD,
        "tool_name": st.just("f") | ODD,
        "images": ODD,
    },
)
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "tool_use", "tool_result", "image"])},
    optional={
        "text": st.just("x") | ODD,
        "id": st.just("c") | ODD,
        "name": st.just("f") | ODD,
        "input": st.just({}) | ODD,
        "tool_use_id": st.just("c") | ODD,
        "content": st.just("x") | ODD,
    },
)
BLOCKS = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": st.lists(BLOCK, max_size=3)}
)
BODY = st.fixed_dictionaries(
    {},
    optional={
        "model": st.just("default") | ODD,
        "messages": st.lists(TURN | BLOCKS, max_size=4) | ODD,
        "prompt": st.text(max_size=5) | ODD,
        "max_tokens": st.integers(1, 9) | ODD,
        "stream": st.booleans() | ODD,
        "options": st.dictionaries(st.sampled_from(["seed", "num_ctx", "stop", "x"]), ODD, max_size=2) | ODD,
        "tools": st.lists(ODD, max_size=2) | ODD,
        "tool_choice": st.sampled_from([{"type": "any"}, {"type": "tool", "name": "f"}]) | ODD,
        "format": st.sampled_from(["json", {"type": "object"}]) | ODD,
        "keep_alive": st.sampled_from([0, -1, "5m", "x"]) | ODD,
        "system": st.text(max_size=3) | ODD,
        "think": ODD,
    },
)


@given(path=st.sampled_from([*OLLAMA, *ANTHROPIC]), body=BODY | ODD)
@hypothesis_settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_odd_json_breaks_nothing(fuzzed: Any, path: str, body: Any) -> None:
    reply = fuzzed(path, json.dumps(body).encode())
    assert reply.status_code < 500, reply.text
    if reply.status_code >= 400:
        assert message_of(path, reply.json())[0]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A synchronous call of one application, because Hypothesis runs no coroutines."""
    import asyncio

    folder: Path = tmp_path_factory.mktemp("fuzz")
    (folder / "scripted.gguf").write_bytes(b"GGUF")
    settings = Settings(
        data_dir=folder / "data",
        model=ModelSettings(name=str(folder / "scripted.gguf")),
        wiki=WikiSettings(load_sample=False),
    )
    with asyncio.Runner() as runner:
        opened = in_process(settings, ScriptedInference())
        client = runner.run(opened.__aenter__())

        def call(path: str, body: bytes) -> Any:
            headers = {"Content-Type": "application/json"}
            return runner.run(client.post(path, content=body, headers=headers))

        yield call
        runner.run(opened.__aexit__(None, None, None))


@pytest.mark.parametrize(
    ("method", "path", "remedy"),
    [
        ("POST", "/chat/completions", ", but at /v1/chat/completions: the client's base address ends in /v1"),
        ("GET", "/models", ", but at /v1/models: the client's base address ends in /v1"),
        ("POST", "/v1/v1/messages", ", but at /v1/messages: the client's base address has no /v1"),
        ("POST", "/v1/files", ""),
    ],
)
async def test_a_base_address_with_or_without_v1_is_corrected(
    client: Client, method: str, path: str, remedy: str
) -> None:
    reply = await client.request(method, path)
    assert reply.status_code == 404
    assert reply.json()["error"]["message"] == f"there is nothing at {path}{remedy}"
