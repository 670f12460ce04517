"""The server's address, shutdown and size."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from pathlib import Path

import httpx2
import psutil
import pytest

from gateway.base.errors import ConfigurationError
from gateway.config.settings import ServerSettings, Settings
from gateway.server.app import create_app
from gateway.server.serve import listening_socket, serve, url_of
from tests.gateway.api.conftest import LiveServer, changed, client_of, live
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import PATIENCE

CHAT = {"messages": [{"role": "user", "content": "hi"}]}
PROGRAM = """
import sys
from pathlib import Path
from gateway.server.serve import run
from gateway.config.settings import LogSettings, ModelSettings, ServerSettings, Settings

folder = Path(sys.argv[1])
settings = Settings(
    data_dir=folder / "data",
    server=ServerSettings(port=0),
    model=ModelSettings(name=sys.argv[2]),
    log=LogSettings(json=True),
)
run(settings, lambda url: print(url, flush=True))
print("ended", flush=True)
"""


async def test_open_work_is_finished_within_the_grace_period(
    server: LiveServer, inference: ScriptedInference
) -> None:
    inference.delay = 0.1
    async with client_of(server) as client:
        reply = asyncio.create_task(client.post("/v1/chat/completions", json=CHAT))
        await inference.begun.acquire()
        server.server.stop()
        assert (await reply).status_code == 200
    with pytest.raises(OSError):
        await server.connect()


async def test_after_the_grace_period_every_client_gets_an_error(
    settings: Settings, inference: ScriptedInference
) -> None:
    inference.delay = 0.2
    inference.script = lambda call: ["x"] * 100_000
    async with (
        live(changed(settings, "server", shutdown_grace_seconds=0.3), inference) as server,
        client_of(server) as client,
    ):
        stream = asyncio.create_task(client.post("/v1/chat/completions", json={**CHAT, "stream": True}))
        whole = asyncio.create_task(client.post("/v1/chat/completions", json=CHAT))
        await inference.begun.acquire()
        await inference.begun.acquire()
        server.server.stop()
        *_, error, done, end = (await stream).text.split("\n\n")
        assert json.loads(error.removeprefix("data: "))["error"]["code"] == "shutting_down"
        assert (done, end) == ("data: [DONE]", "")
        assert (await whole).status_code == 503
        assert (await whole).headers["retry-after"]
    assert inference.running == 0


async def test_a_second_stop_does_not_wait(settings: Settings, inference: ScriptedInference) -> None:
    inference.delay = 3600.0
    async with (
        live(changed(settings, "server", shutdown_grace_seconds=3600.0), inference) as server,
        client_of(server) as client,
    ):
        whole = asyncio.create_task(client.post("/v1/chat/completions", json=CHAT))
        await inference.begun.acquire()
        server.server.stop()
        await asyncio.sleep(0.2)
        server.server.stop()
        assert (await asyncio.wait_for(whole, PATIENCE)).status_code == 503


async def test_listeners_do_not_hold_up_a_stop(settings: Settings, inference: ScriptedInference) -> None:
    """Event streams never end by themselves, so shutdown does not wait for them."""
    async with (
        live(changed(settings, "server", shutdown_grace_seconds=3600.0), inference) as server,
        httpx2.AsyncClient(base_url=server.url, timeout=PATIENCE) as client,
    ):
        name = (await client.post("/v1/conversations", json={})).json()["id"]
        async with client.stream("GET", f"/v1/conversations/{name}/events") as news:
            lines = news.aiter_lines()
            assert await anext(lines) == "event: state"
            server.server.stop()
            assert "event: error" not in [line async for line in lines], "it ends, and that is no error"


async def test_start_up_errors_reach_the_caller(settings: Settings, inference: ScriptedInference) -> None:
    public = changed(settings, "server", host="0.0.0.0")
    with pytest.raises(ConfigurationError, match="hearth key create"):
        await serve(public, create_app(public, inference=inference), lambda url: None)


def test_an_address_in_use() -> None:
    with listening_socket(ServerSettings(port=0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(ConfigurationError, match=str(port)):
            listening_socket(ServerSettings(port=port))
    with pytest.raises(ConfigurationError, match=r"no\.such\.host"):
        listening_socket(ServerSettings(host="no.such.host.invalid", port=0))


def test_only_an_address_in_use_is_blamed_on_another_program() -> None:
    with pytest.raises(ConfigurationError) as refused:
        listening_socket(ServerSettings(host="192.0.2.1"))  # of no machine: reserved for documents
    assert str(refused.value).endswith("; choose another --host or --port")


def test_urls() -> None:
    with listening_socket(ServerSettings(port=0)) as sock:
        port = sock.getsockname()[1]
        assert url_of("127.0.0.1", sock) == f"http://127.0.0.1:{port}"
        assert url_of("::1", sock) == f"http://[::1]:{port}"
    if socket.has_ipv6:
        with listening_socket(ServerSettings(host="[::1]", port=0)) as sock:
            assert sock.family == socket.AF_INET6


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_program_is_small_and_stops_on_request(
    settings: Settings, tmp_path: Path, number: signal.Signals
) -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, tmp_path, settings.model.name, stdout=-1, stderr=-1
    )
    assert child.stdout is not None
    url = (await asyncio.wait_for(child.stdout.readline(), PATIENCE)).decode().strip()
    async with httpx2.AsyncClient(base_url=url) as client:
        for path in ("/readyz", "/v1/models", "/metrics", "/admin/health"):
            assert (await client.get(path)).status_code == 200
        health = (await client.get("/admin/health", headers={"X-Request-ID": "h-1"})).json()
        assert (health["host"]["state"], health["host"]["pid"]) == ("stopped", None)
        process = psutil.Process(child.pid)
        assert process.children() == []
        assert process.memory_info().rss < 80e6
        # An idle connection must not delay the shutdown.
        _, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        child.send_signal(number)
        rest, errors = await asyncio.wait_for(child.communicate(), PATIENCE)
        writer.close()
    assert (child.returncode, rest) == (0, b"ended\n"), errors.decode()
    lines = [json.loads(line) for line in errors.splitlines()]
    (line,) = [line for line in lines if line.get("request_id") == "h-1"]
    assert (line["event"], line["path"], line["status"], line["level"]) == (
        "request",
        "/admin/health",
        200,
        "info",
    )
