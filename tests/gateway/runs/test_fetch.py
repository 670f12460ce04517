"""`http_get`: the hosts of the configuration, texts of a bounded size, and no redirects."""

from __future__ import annotations

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from gateway.config.settings import Settings
from tests.gateway.api.conftest import in_process
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.runs.conftest import answer, begin, rest, with_limits
from tests.serving import served_by


class Prices(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = {"/moved": 302, "/gone": 404}.get(self.path, 200)
        body = b"x" * 2_000_000 if self.path == "/large" else b"Bread is 3 euros."
        self.send_response(status)
        self.send_header("Location", "http://169.254.169.254/")
        self.send_header("Content-Type", "image/png" if self.path == "/image" else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def host() -> Iterator[str]:
    with served_by(Prices) as url:
        yield url.removeprefix("http://")


async def test_only_listed_hosts_are_fetched_from(
    settings: Settings, inference: ScriptedInference, host: str
) -> None:
    async with in_process(with_limits(settings, http_hosts=[host]), inference) as client:
        run = await rest(client, await begin(client, f"Fetch http://{host}/prices"))
        assert (run["state"], run["result"]) == ("done", "Bread is 3 euros.")
        for address, why in (
            (f"http://{host}/moved", "status 302"),
            (f"http://{host}/gone", "status 404"),
            (f"http://{host}/large", "more than 1 MiB"),
            (f"http://{host}/image", "image/png"),
            ("http://169.254.169.254/latest/meta-data", "may only fetch from"),
            (f"http://{host.partition(':')[0]}/", "may only fetch from"),
            (f"http://user@{host}/", "may only fetch from"),
            (f"http://{host}@evil.example/", "may only fetch from"),
            ("file:///etc/passwd", "may only fetch from"),
        ):
            task = await begin(client, "x", f"http_get: {address}")
            run = await rest(client, task)
            assert why in run["breakpoint"]["question"], address
            assert (await answer(client, task, "cancel"))["state"] == "cancelled"


async def test_without_hosts_there_is_no_such_tool(settings: Settings, inference: ScriptedInference) -> None:
    async with in_process(settings, inference) as client:
        made = (await client.post("/v1/tasks", json={"title": "x", "archetype": "model"})).json()["id"]
        reply = await client.post(f"/v1/tasks/{made}/run", json={"steps": ["http_get: http://example.org/"]})
        assert reply.status_code == 400
        assert "names no tool" in reply.json()["error"]["message"]
