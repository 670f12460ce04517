"""Checks of host, origin, content type and key."""

from __future__ import annotations

import httpx2
import pytest

from gateway.api.http.auth import is_loopback, presented_key
from gateway.base.errors import ConfigurationError
from gateway.cli.common.files import opened_database
from gateway.config.settings import Settings
from gateway.server.app import ENDPOINTS, create_app
from gateway.store.keys import revoke_key
from tests.gateway.api.conftest import Client, changed, in_process, make_key
from tests.gateway.api.routes import PUBLIC, endless, path_of
from tests.gateway.api.scripted import ScriptedInference


@pytest.mark.parametrize(
    "host", ["127.0.0.1:8420", "localhost", "LOCALHOST:1", "[::1]:8420", "wiki.example", "wiki.example:443"]
)
async def test_known_hosts_are_answered(settings: Settings, inference: ScriptedInference, host: str) -> None:
    settings = changed(settings, "server", allowed_hosts=["Wiki.example"])
    async with in_process(settings, inference) as client:
        assert (await client.get("/healthz", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "evil@localhost", "localhost/x", "", "[::1", "localhost:x"],
)
async def test_other_hosts_are_misdirected(client: Client, host: str) -> None:
    reply = await client.get("/healthz", headers={"Host": host})
    assert reply.status_code == 421
    assert reply.json()["error"]["code"] == "unknown_host"
    assert reply.headers["x-request-id"] == reply.json()["error"]["request_id"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_foreign_pages_change_nothing(
    client: Client, inference: ScriptedInference, headers: dict[str, str]
) -> None:
    for path in ("/ask", "/admin/host/unload"):
        reply = await client.post(path, headers={**headers, "Content-Type": "text/plain"}, content="Befunge?")
        assert reply.status_code == 403
        assert "access-control-allow-origin" not in reply.headers
    assert inference.calls == []
    assert inference.events == []


async def test_own_pages_may_post(client: Client, inference: ScriptedInference) -> None:
    for origin in ("http://127.0.0.1", "https://127.0.0.1:443"):
        host = {"Host": "127.0.0.1:443"} if origin.startswith("https") else {}
        reply = await client.post("/admin/host/warm", headers={"Origin": origin, **host})
        assert reply.status_code == 200
        assert "access-control-allow-origin" not in reply.headers


async def test_configured_origins_get_cors(settings: Settings, inference: ScriptedInference) -> None:
    settings = changed(settings, "server", allowed_origins=["https://app.example"])
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    async with in_process(settings, inference) as client:
        preflight = await client.options("/ask", headers={"Origin": "https://app.example", **asks})
        assert preflight.status_code == 204
        assert preflight.headers["access-control-allow-origin"] == "https://app.example"
        assert "POST" in preflight.headers["access-control-allow-methods"]
        assert "Authorization" in preflight.headers["access-control-allow-headers"]

        reply = await client.post("/ask", json={}, headers={"Origin": "https://app.example"})
        assert reply.status_code == 400  # the page can read errors too
        assert reply.headers["access-control-allow-origin"] == "https://app.example"
        assert "Origin" in reply.headers["vary"]

        foreign = await client.options("/ask", headers={"Origin": "https://evil.example", **asks})
        assert foreign.status_code == 403
        assert "access-control-allow-origin" not in foreign.headers


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None]
)
async def test_json_endpoints_accept_only_json(client: Client, kind: str | None) -> None:
    headers = {"Content-Type": kind} if kind else {}
    body = b'{"messages": [{"role": "user", "content": "hi"}]}'
    reply = await client.post("/v1/chat/completions", content=body, headers=headers)
    assert reply.status_code == 415
    assert "application/json" in reply.json()["error"]["message"]


async def test_a_route_without_fields_takes_an_empty_object_and_nothing_else(client: Client) -> None:
    path = (await client.post("/v1/conversations", json={})).json()["id"]
    for empty in ("", "{}", " null "):
        reply = await client.request(
            "DELETE", f"/v1/facts/{'0' * 26}", content=empty, headers={"Content-Type": "application/json"}
        )
        assert reply.status_code == 404, reply.text
    full = await client.request("DELETE", f"/v1/conversations/{path}", json={"really": True})
    assert full.status_code == 400
    assert "has no fields" in full.json()["error"]["message"]
    assert (await client.get(f"/v1/conversations/{path}")).status_code == 200
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (
        await client.request("DELETE", f"/v1/conversations/{path}", content="a=1", headers=form)
    ).status_code == 415


async def test_unknown_paths_and_methods(client: Client) -> None:
    missing = await client.get("/nothing")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "not_found")
    wrong = await client.get("/ask")
    assert (wrong.status_code, wrong.json()["error"]["code"]) == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "POST"
    assert (await client.get("/healthz/")).status_code == 404


async def test_without_keys_loopback_is_open(client: Client) -> None:
    assert (await client.get("/admin/health")).status_code == 200
    unknown = await client.get("/admin/health", headers={"Authorization": "Bearer anything"})
    assert unknown.status_code == 200


async def test_with_a_key_everything_but_the_probes_and_the_page_needs_one(
    client: Client, settings: Settings
) -> None:
    user, admin = make_key(settings, "irc", "user"), make_key(settings, "me", "admin")
    for endpoint in ENDPOINTS:
        path = endpoint.path.replace("{id:path}", "default")
        stranger = await client.request(endpoint.method, path)
        if endpoint.access == "public":
            assert path_of(endpoint) in PUBLIC
            assert stranger.status_code in (200, 404), "it is there, or a file that is not"
            continue
        assert stranger.status_code == 401, path
        assert stranger.headers["www-authenticate"] == "Bearer"
        wrong = await client.request(endpoint.method, path, headers={"x-api-key": user + "x"})
        assert wrong.status_code == 401
        if endless(endpoint):
            continue
        known = await client.request(endpoint.method, path, headers={"x-api-key": user})
        assert (known.status_code == 403) is (endpoint.access == "admin"), path
        allowed = await client.request(endpoint.method, path, headers={"Authorization": f"Bearer {admin}"})
        assert allowed.status_code not in (401, 403), path
    assert (await client.get("/nothing")).status_code == 401


async def test_a_revoked_key_is_refused_at_once_and_opens_nothing(client: Client, settings: Settings) -> None:
    key = make_key(settings, "irc", "user")
    assert (await client.get("/v1/models", headers={"x-api-key": key})).status_code == 200
    with opened_database(settings.data_dir / "hearth.db") as database:
        await database.write(lambda connection: revoke_key(connection, "irc"))
    assert (await client.get("/v1/models", headers={"x-api-key": key})).status_code == 401
    assert (await client.get("/v1/models")).status_code == 401


async def test_a_public_address_needs_a_key(settings: Settings, inference: ScriptedInference) -> None:
    settings = changed(settings, "server", host="0.0.0.0")
    app = create_app(settings, inference=inference)
    with pytest.raises(ConfigurationError, match="hearth key create"):
        async with app.router.lifespan_context(app):
            pass
    key = make_key(settings, "me", "admin")
    async with in_process(settings, inference) as client:
        assert (await client.get("/v1/models")).status_code == 401
        assert (await client.get("/v1/models", headers={"x-api-key": key})).status_code == 200


def test_loopback_addresses() -> None:
    assert all(map(is_loopback, ["localhost", "127.0.0.1", "127.8.8.8", "::1", "[::1]"]))
    assert not any(
        map(is_loopback, ["0.0.0.0", "::", "192.168.1.5", "wiki.example", "localhost.evil.example"])
    )


def test_key_headers() -> None:
    assert presented_key(httpx2.Headers({"Authorization": "bearer  k "})) == "k"
    assert presented_key(httpx2.Headers({"Authorization": "Basic abc", "x-api-key": "k"})) == "k"
    assert presented_key(httpx2.Headers({"Authorization": "Bearer "})) is None
