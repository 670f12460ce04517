"""POST /mcp below the official client: checks, sessions, clients that leave, hostile messages."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from typing import Any

import httpx2
import pytest

from gateway.api.mcp.tools import offered
from gateway.config.settings import Settings
from tests.gateway.api.conftest import Client, LiveServer, changed, connected, in_process, make_key
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import until

ACCEPT = {"Accept": "application/json, text/event-stream"}
NEWEST = ACCEPT | {"MCP-Protocol-Version": "2026-07-28"}
ASK = {"name": "ask_wiki", "arguments": {"question": "Who created Befunge?"}}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def message(method: str, params: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params or {}} | fields


def initialize(version: str) -> dict[str, Any]:
    who = {"name": "test", "version": "1"}
    return message("initialize", {"protocolVersion": version, "capabilities": {}, "clientInfo": who}, id=0)


def answer_of(reply: httpx2.Response) -> dict[str, Any]:
    """The JSON-RPC message of a reply, which is JSON or the last event of a stream."""
    text = reply.text
    if reply.headers["content-type"].startswith("text/event-stream"):
        text = [line for line in text.splitlines() if line.startswith("data: ")][-1].removeprefix("data: ")
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_older_clients_get_their_version(client: Client, version: str) -> None:
    reply = await client.post("/mcp", json=initialize(version), headers=ACCEPT)
    assert answer_of(reply)["result"]["protocolVersion"] == version
    headers = ACCEPT | {"mcp-session-id": reply.headers["mcp-session-id"], "MCP-Protocol-Version": version}
    reply = await client.post("/mcp", json=message("notifications/initialized"), headers=headers)
    assert reply.status_code == 202
    reply = await client.post("/mcp", json=message("tools/list", id=1), headers=headers)
    assert len(answer_of(reply)["result"]["tools"]) == len(offered(write=False))


async def test_a_session_outlives_its_server(settings: Settings, inference: ScriptedInference) -> None:
    """After a restart, or at another gateway: clients do not begin again by themselves."""
    async with in_process(settings, inference) as client:
        reply = await client.post("/mcp", json=initialize("2025-06-18"), headers=ACCEPT)
    headers = ACCEPT | {"mcp-session-id": reply.headers["mcp-session-id"]}
    async with in_process(settings, inference) as client:
        call = message("tools/call", {"name": "facts", "arguments": {}}, id=1)
        reply = await client.post("/mcp", json=call, headers=headers)
    assert answer_of(reply)["result"]["structuredContent"] == {"data": [], "next": None}


async def test_nothing_else_is_at_the_address(client: Client) -> None:
    for method in ("GET", "DELETE"):
        reply = await client.request(method, "/mcp", headers=ACCEPT)
        assert reply.status_code == 405
        assert reply.json()["error"]["message"] == f"/mcp does not accept {method}"


async def test_the_guard_stands_before_it(settings: Settings, inference: ScriptedInference) -> None:
    settings = changed(settings, "server", max_body_bytes=9000)
    listing = message("tools/list", id=1)
    async with in_process(settings, inference) as client:
        for headers, status, code in (
            ({"Host": "evil.example"}, 421, "unknown_host"),
            ({"Origin": "https://evil.example"}, 403, "foreign_origin"),
            ({"Sec-Fetch-Site": "cross-site"}, 403, "foreign_origin"),
            ({"Content-Type": "text/plain"}, 415, "unsupported_media_type"),
        ):
            reply = await client.post("/mcp", content=json.dumps(listing), headers=ACCEPT | headers)
            assert (reply.status_code, reply.json()["error"]["data"]["code"]) == (status, code)
        reply = await client.post("/mcp", json=message("ping", {"x": "y" * 9000}, id=1), headers=ACCEPT)
        assert (reply.status_code, reply.json()["jsonrpc"]) == (413, "2.0")
    make_key(settings, "anna", "user")
    async with in_process(settings, inference) as client:
        reply = await client.post("/mcp", json=listing, headers=ACCEPT)
        assert reply.status_code == 401
        assert reply.json()["error"]["message"] == "an API key is needed: Authorization: Bearer KEY"


@pytest.mark.parametrize(
    ("headers", "params"),
    [
        (NEWEST | {"Mcp-Method": "tools/call", "Mcp-Name": "ask_wiki"}, ASK | {"_meta": META}),
        (ACCEPT, ASK),
    ],
)
async def test_a_client_that_leaves_ends_its_work(
    server: LiveServer, inference: ScriptedInference, headers: dict[str, str], params: dict[str, Any]
) -> None:
    inference.delay = 1000.0
    body = json.dumps(message("tools/call", params, id=1)).encode()
    head = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
    } | headers
    _, writer = await server.connect()
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in head.items()), "", ""]
    writer.write("\r\n".join(lines).encode() + body)
    await inference.begun.acquire()
    writer.close()
    await inference.cancelled.wait()
    await until(lambda: inference.running == 0)


async def test_only_its_own_client_cancels_a_call(settings: Settings, inference: ScriptedInference) -> None:
    """Every client counts its calls from one, so the id alone says nothing."""
    anna, ben = make_key(settings, "anna", "user"), make_key(settings, "ben", "user")
    inference.delay = 1000.0

    def headers(key: str, session: str) -> dict[str, str]:
        return ACCEPT | {"Authorization": f"Bearer {key}", "mcp-session-id": session}

    cancel = message("notifications/cancelled", {"requestId": 1})
    async with connected(settings, inference) as client:
        call = asyncio.create_task(
            client.post("/mcp", json=message("tools/call", ASK, id=1), headers=headers(anna, "s"))
        )
        await inference.begun.acquire()
        strange = [message("notifications/cancelled", {"requestId": id_}) for id_ in ({}, [], None, "1", 2.5)]
        for key, session, body in (
            (ben, "s", cancel),
            (anna, "t", cancel),
            (anna, "", cancel),
            *((anna, "s", each) for each in strange),
        ):
            reply = await client.post("/mcp", json=body, headers=headers(key, session))
            assert reply.status_code < 500
        assert not inference.cancelled.is_set()
        assert (await client.post("/mcp", json=cancel, headers=headers(anna, "s"))).status_code == 202
        result = answer_of(await call)["result"]
    assert inference.cancelled.is_set()
    assert (result["isError"], result["content"][0]["text"]) == (True, "the call was cancelled")


async def test_the_extra_is_named_when_it_is_missing(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("server", "transport"):
        monkeypatch.delitem(sys.modules, f"gateway.api.mcp.{name}", raising=False)
    reply = await client.post("/mcp", json=message("tools/list", id=1), headers=ACCEPT)
    assert reply.status_code == 501
    assert "python -m pip install 'mcp>=2.3,<3'" in reply.json()["error"]["message"]


def test_a_server_without_mcp_clients_does_not_load_the_package() -> None:
    assert "mcp" not in _loaded_by("import gateway.server.serve, gateway.server.app")


def _loaded_by(statement: str) -> set[str]:
    # In a process of its own: this one has loaded everything.
    import subprocess

    code = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


WHOLE = [
    message("tools/call", ASK | {"_meta": META}, id=1),
    message("tools/call", {"name": "read_page", "arguments": {"title": "Befunge", "offset": 3}}, id="a"),
    message("tools/list", {"_meta": META}, id=2),
    message("notifications/cancelled", {"requestId": 1}),
    message("server/discover", {"_meta": META}, id=3),
    initialize("2025-11-25"),
]
ODD: list[Any] = [
    None, True, -1, 10**400, 1e308, "", "\ud800", "\x00", "x" * 5000, [], [[]] * 50, {}, {"$ref": "#"},
    "tools/call", "notifications/cancelled", "2.0", {"name": {"name": []}},
]  # fmt: skip
RAW = [
    b"", b"\xff\xfe", b"{", b"[]", b"null", b"1", b'"x"', b"[" * 100_000, b'{"a":' * 5000, b"{}", b"NaN",
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}' * 2, b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"ping"}',
]  # fmt: skip


def mutated(value: Any, chance: random.Random) -> Any:
    """``value`` with one of its parts replaced, removed or doubled."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        name = chance.choice(list(value))
        fate = chance.random()
        if fate < 0.15:
            return {key: each for key, each in value.items() if key != name}
        if fate < 0.25:
            return value | {str(chance.choice(ODD)): value[name]}
        return value | {name: mutated(value[name], chance)}
    return chance.choice(ODD)


@pytest.mark.parametrize("headers", [ACCEPT, NEWEST])
async def test_hostile_messages_are_refused_and_hurt_nothing(
    client: Client, inference: ScriptedInference, headers: dict[str, str]
) -> None:
    chance = random.Random(4)
    bodies = RAW + [json.dumps(mutated(chance.choice(WHOLE), chance)).encode() for _ in range(400)]
    for body in bodies:
        try:
            method = json.loads(body)["method"]
            named = {"Mcp-Method": method, "Mcp-Name": "ask_wiki"} if method.isprintable() else {}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            named = {}
        if any(not each.isascii() or len(each) > 100 for each in named.values()):
            named = {}
        sent = headers | {"Content-Type": "application/json"} | (named if headers is NEWEST else {})
        reply = await client.post("/mcp", content=body, headers=sent)
        assert reply.status_code in (200, 202, 400, 404), (body[:200], reply.status_code, reply.text)
        if reply.status_code != 202:
            assert answer_of(reply)["jsonrpc"] == "2.0"
            assert answer_of(reply).get("error", {}).get("code") not in (0, -32603), (body[:300], reply.text)
    assert inference.running == 0
    reply = await client.post("/mcp", json=message("tools/list", id=1), headers=ACCEPT)
    assert len(answer_of(reply)["result"]["tools"]) == len(offered(write=False))
