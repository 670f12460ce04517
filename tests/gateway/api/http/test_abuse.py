"""Hostile requests on every route: foreign hosts and origins, invalid keys, other spellings of paths."""

from __future__ import annotations

import asyncio

import pytest

from gateway.cli.common.files import opened_database
from gateway.config.settings import Settings
from gateway.store.keys import revoke_key
from tests.gateway.api.conftest import Client, LiveServer, make_key
from tests.gateway.api.routes import ENDPOINTS, PUBLIC, endless, path_of, route_id
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import PATIENCE

ADMIN_ROUTES = [endpoint for endpoint in ENDPOINTS if endpoint.access == "admin"]


class Keys:
    """One credential of each kind; ``refused`` are invalid or revoked."""

    def __init__(self, settings: Settings) -> None:
        self.user, self.admin = make_key(settings, "user", "user"), make_key(settings, "admin", "admin")
        revoked = make_key(settings, "gone", "admin")
        with opened_database(settings.data_dir / "hearth.db") as database:
            database.write_sync(lambda connection: revoke_key(connection, "gone"))
        keys = (
            "",
            revoked,
            "hk_" + "a" * 43,
            self.admin[:-1],
            self.admin + "x",
            self.admin.upper(),
            "é" * 20,
        )
        self.refused = [{}, *({"x-api-key": key} for key in keys)]
        self.refused += [{"Authorization": f"Bearer {key}"} for key in keys]
        self.refused += [{"Authorization": f"Basic {self.admin}"}, {"Authorization": self.admin}]
        self.refused += [
            {"Cookie": f"key={self.admin}"},
            {"X-Forwarded-User": "admin", "X-Real-IP": "127.0.0.1"},
        ]


@pytest.fixture
def keys(settings: Settings) -> Keys:
    return Keys(settings)


def encoded(headers: dict[str, str]) -> dict[bytes, bytes]:
    """Header values as bytes, so that they can have any text."""
    return {name.encode(): value.encode() for name, value in headers.items()}


async def test_every_route_with_every_credential(client: Client, keys: Keys) -> None:
    """Route × credential × role, from the route table, so that new routes are included."""
    checked = 0
    for endpoint in ENDPOINTS:
        path = path_of(endpoint)
        for headers in keys.refused:
            status = (await client.request(endpoint.method, path, headers=encoded(headers))).status_code
            assert (status == 401) is (endpoint.access != "public"), (route_id(endpoint), headers)
            checked += 1
        if endless(endpoint):
            continue
        for form in ("Bearer {}", "bearer   {}"):
            as_user = {"Authorization": form.format(keys.user)}
            status = (await client.request(endpoint.method, path, headers=as_user)).status_code
            assert status != 401
            assert (status == 403) is (endpoint.access == "admin"), route_id(endpoint)
        as_admin = {"x-api-key": keys.admin}
        assert (await client.request(endpoint.method, path, headers=as_admin)).status_code not in (401, 403)
    assert checked > 800


async def test_no_method_opens_a_route_to_strangers(client: Client, keys: Keys) -> None:
    for endpoint in ENDPOINTS:
        for method in (
            "GET",
            "HEAD",
            "POST",
            "PUT",
            "PATCH",
            "DELETE",
            "OPTIONS",
            "TRACE",
            "PROPFIND",
            "get",
        ):
            reply = await client.request(method, path_of(endpoint))
            refused = reply.status_code in (401, 405)
            open_to_all = path_of(endpoint) in PUBLIC and method.upper() in ("GET", "HEAD")
            assert refused or open_to_all, (method, route_id(endpoint))


async def test_foreign_names_reach_nothing(client: Client, keys: Keys) -> None:
    """DNS rebinding: an unknown host gets 421 with any key on any route."""
    for host in (
        "evil.example",
        "127.0.0.1.evil.example:8420",
        "localhost.evil.example",
        "evil.example#localhost",
    ):
        for endpoint in ENDPOINTS:
            headers = {"Host": host, "Authorization": f"Bearer {keys.admin}"}
            reply = await client.request(endpoint.method, path_of(endpoint), headers=headers)
            assert reply.status_code == 421, route_id(endpoint)


async def test_foreign_pages_reach_nothing(client: Client, inference: ScriptedInference) -> None:
    """CSRF on a loopback server without keys, which local browsers can reach."""
    marks = [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}]
    for endpoint in ENDPOINTS:
        if endless(endpoint):
            continue
        for headers in marks:
            reply = await client.request(endpoint.method, path_of(endpoint), headers=headers)
            # A foreign page may send safe requests; the browser does not let it read the reply.
            assert (reply.status_code == 403) is (endpoint.method != "GET"), route_id(endpoint)
            assert not [name for name in reply.headers if name.startswith("access-control-")]
        preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": endpoint.method}
        reply = await client.options(path_of(endpoint), headers=preflight)
        assert reply.status_code == 403
        assert not [name for name in reply.headers if name.startswith("access-control-")]
    assert inference.calls == []
    assert set(inference.events) <= {"stats"}


async def test_endless_replies_are_for_keys_and_own_pages(server: LiveServer, keys: Keys) -> None:
    found = [endpoint for endpoint in ENDPOINTS if endless(endpoint)]
    assert found
    for endpoint in found:
        for key, status in ((keys.user, b"200"), (keys.admin, b"200"), ("nobody's", b"401")):
            reader, writer = await server.connect()
            head = f"GET {endpoint.path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {key}\r\n"
            writer.write(f"{head}Origin: https://evil.example\r\n\r\n".encode())
            reply = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE)
            writer.close()
            assert reply.split()[1] == status
            assert b"access-control-" not in reply.lower()


# Spellings of an admin path; {} is the path without its first slash.
SPELLINGS = (
    "//{}",
    "/./{}",
    "/v1/../{}",
    "/healthz/../{}",
    "/healthz/..%2f{}",
    "/healthz%2f..%2f{}",
    "/%2e%2e/{}",
    "/{}/",
    "/{}/.",
    "/{}%00",
    "/{}%20",
    "/{};x",
    "/{}?path=/healthz",
    "/{}#/healthz",
    "/healthz;/{}",
    "/healthz?/{}",
    "/\\{}",
    "http://127.0.0.1/{}",
    "http://evil.example/{}",
    "{}",
)


def spellings(path: str) -> list[str]:
    """All spellings, also of parts of the path."""
    bare = path.removeprefix("/")
    made = [form.format(bare) for form in SPELLINGS]
    made += [path.upper(), path.replace("/", "%2f"), path.replace("/", "%252f"), path.replace("/", "\\")]
    made += ["/" + "".join(f"%{ord(letter):02x}" for letter in bare), "/" + bare.replace("a", "%61")]
    made += [
        "/" + bare.replace("a", "%2561"),
        "/" + bare.replace("d", "\u0501"),
        "/" + bare.replace("a", "%c1%a1"),
    ]
    return made


async def send(server: LiveServer, head: str) -> bytes:
    """Send a raw head and return the raw reply."""
    reader, writer = await server.connect()
    writer.write(f"{head}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode())
    reply = await asyncio.wait_for(reader.read(), PATIENCE)
    writer.close()
    return reply


async def test_no_spelling_of_a_path_gives_admin_rights(
    server: LiveServer, keys: Keys, inference: ScriptedInference
) -> None:
    """Raw, because clients normalize paths."""
    for endpoint in ADMIN_ROUTES:
        for path in spellings(endpoint.path):
            head = f"{endpoint.method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {keys.user}"
            reply = await send(server, head)
            if path.startswith("/healthz?"):
                continue  # that is /healthz, with a question
            assert reply.split()[1] in (b"400", b"403", b"404", b"405", b"421"), (path, reply)
    assert inference.events == []


@pytest.mark.parametrize(
    "header",
    ["X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override", "X-Forwarded-Host", "X-Forwarded-Prefix"],
)
async def test_headers_name_no_other_request(server: LiveServer, keys: Keys, header: str) -> None:
    for value in ("/admin/health", "/admin", "POST", "127.0.0.1/admin/health"):
        head = f"GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Api-Key: {keys.user}\r\n{header}: {value}"
        reply = await send(server, head)
        assert reply.split()[1] == b"200"
        assert b'"data"' in reply


@pytest.mark.parametrize("count", [3_000, 10_000])
async def test_thousands_of_ranges_cost_nothing(server: LiveServer, count: int) -> None:
    ranges = "bytes=" + ",".join(f"{number}-{number}" for number in range(count))
    reply = await send(server, f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: {ranges}")
    # Refused as too long, or ignored: ranges are not supported.
    assert reply.split()[1] == (b"431" if len(ranges) > 32_000 else b"200")
    assert b"multipart" not in reply
