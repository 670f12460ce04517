"""What clients send is theirs: it stands in no log line and in no metric, whatever the route and the outcome."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.api.http.endpoint import Endpoint
from gateway.server.app import ENDPOINTS
from tests.end_to_end.server import Server
from tests.gateway.api.routes import path_of

CANARY = "canary-3f9d1c-"
SECRET = "hk_" + "aB3-" * 11
HEADERS = {
    "User-Agent": f"{CANARY}agent",
    "Referer": f"https://example.org/{CANARY}referer",
    "Cookie": f"session={CANARY}cookie",
    "Accept-Language": f"{CANARY}language",
    "X-Anything": f"{CANARY}anything",
    "X-Request-ID": f"{CANARY}with spaces, so it is not taken over",
}
FIELDS = (
    "question",
    "prompt",
    "content",
    "text",
    "title",
    "input",
    "model",
    "user",
    "system",
    "kind",
    "style",
)
BODY = {name: f"{CANARY}{name}" for name in FIELDS}
CHAT = {"messages": [{"role": "user", "content": f"{CANARY}message"}], "max_tokens": 4}
BODIES = (
    (json.dumps(CHAT), "application/json"),
    (json.dumps({"question": f"{CANARY}question"}), "application/json"),
    (json.dumps({"prompt": f"{CANARY}prompt", "max_tokens": 4, "text": f"{CANARY}text"}), "application/json"),
    (json.dumps({**BODY, **CHAT}), "application/json"),
    (json.dumps({**BODY, **CHAT})[:-9], "application/json"),
    (f'{{"{CANARY}": 1}}', "application/json"),
    (f"{CANARY}plain", "text/plain"),
    (f"question={CANARY}form", "application/x-www-form-urlencoded"),
    (f"{CANARY}other", f"text/{CANARY}"),
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Server]:
    server = Server(
        tmp_path_factory.mktemp("canaries") / "data", tiny_model, env={"HEARTH_LOG__LEVEL": "debug"}
    )
    yield server
    assert server.stop() == 0


def key_of(server: Server) -> str:
    command = [sys.executable, "-m", "gateway.cli.main", "key", "create", "ops", "--role", "admin"]
    made = subprocess.run(
        [*command, "--data-dir", str(server.data_dir)], capture_output=True, text=True, check=True
    )
    return made.stdout.strip()


def send(server: Server, endpoint: Endpoint, body: tuple[str, str], credential: str) -> int:
    """Send it and read the beginning of the reply: its status."""
    host, port = server.url.removeprefix("http://").split(":")
    content, kind = body
    query = f"user={CANARY}user" if endpoint.path == "/v1/requests" else f"q={CANARY}query"
    lines = [f"{endpoint.method} {path_of(endpoint)}?{query} HTTP/1.1", f"Host: {host}", credential]
    lines += [f"{name}: {value}" for name, value in HEADERS.items()]
    lines += [f"Content-Type: {kind}", f"Content-Length: {len(content)}", "Connection: close", "", content]
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall("\r\n".join(lines).encode())
        reply = connection.recv(4096)
    return int(reply.split()[1])


@pytest.mark.soak
def test_no_log_line_and_no_metric_has_what_was_sent(server: Server) -> None:
    key = key_of(server)
    statuses = set()
    for endpoint in ENDPOINTS:
        for body in BODIES:
            statuses.add(send(server, endpoint, body, f"Authorization: Bearer {key}"))
        for credential in (
            f"X-Api-Key: {SECRET}",
            f"Authorization: Bearer {CANARY}key",
            f"Authorization: {CANARY}",
        ):
            send(server, endpoint, BODIES[0], credential)
    assert {200, 400, 415} <= statuses, "some were answered and some refused"
    authorized = {"Authorization": f"Bearer {key}"}
    metrics = server.client.get("/metrics", headers=authorized).text
    assert re.search(r'^http_requests_total\{.*"/v1/chat/completions"', metrics, re.MULTILINE)
    assert CANARY not in metrics
    log = server.log.read_text()
    assert log.count("gateway.access") > len(ENDPOINTS) * len(BODIES), "the log is watched"
    assert [line for line in log.splitlines() if CANARY in line] == []
    assert key not in log
    assert SECRET not in log


def test_a_key_in_a_path_is_taken_out_of_the_log(server: Server) -> None:
    for path in (f"/v1/models/{SECRET}", f"/{SECRET}", f"/v1/conversations/{SECRET}/messages"):
        server.client.get(path)
    assert SECRET not in server.log.read_text()
    assert "[redacted]" in server.log.read_text()
