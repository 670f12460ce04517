"""Debian's nginx with our configuration, in front of the real gateway on a tiny random model."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest

from gateway.server.app import ENDPOINTS
from tests.deploy.debian import need
from tests.deploy.proxy import NAME, Proxy, balanced, proxy
from tests.end_to_end.server import Server
from tests.waiting import eventually

HI = [{"role": "user", "content": "hello there"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Iterator[Server]:
    environment = {"HEARTH_SERVER__ALLOWED_HOSTS": NAME, "HEARTH_LOG__JSON": "true"}
    server = Server(tmp_path_factory.mktemp("gateway") / "data", tiny_model, env=environment)
    server.client.post("/admin/host/warm").raise_for_status()
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory, server: Server) -> Iterator[Proxy]:
    with proxy(tmp_path_factory.mktemp("nginx"), server.url) as running:
        yield running


def stream_request(tokens: int, *headers: str) -> bytes:
    body = json.dumps({"messages": HI, "max_tokens": tokens, "ignore_eos": True, "stream": True}).encode()
    lines = [
        "POST /v1/chat/completions HTTP/1.1",
        f"Host: {NAME}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def running(server: Server) -> int:
    queue = server.health()["queue"]
    return int(queue["waiting"]) + int(queue["running"])


def last_request(server: Server, request_id: str) -> dict[str, object]:
    """What the gateway's access log says of a request."""

    def found() -> list[dict[str, object]]:
        lines = [
            json.loads(line) for line in server.log.read_text().splitlines() if f'"{request_id}"' in line
        ]
        return [line for line in lines if line.get("event") == "request"]

    eventually(lambda: bool(found()), "the gateway did not log the request")
    return found()[-1]


def test_replies_come_as_they_are_written(front: Proxy, server: Server) -> None:
    """By order and not by speed: early pieces are read while the model is still busy with the later ones."""
    with front.connect() as connection:
        connection.sendall(stream_request(6000))
        received = b""
        while received.count(b"data: ") < 5:
            received += connection.recv(65536)
        assert running(server) == 1, "the first pieces came when the generation was over"
    eventually(lambda: running(server) == 0, "the generation goes on")
    with front.connect() as connection:
        connection.sendall(stream_request(2000, "Connection: close"))
        arrivals, whole = [], b""
        while piece := connection.recv(65536):
            whole += piece
            arrivals.append((time.monotonic(), piece.count(b"data: ")))
    assert b"data: [DONE]" in whole
    # The host sends text some twenty times a second. A proxy that buffers passes on what fills its buffers: a few
    # pieces here, of many messages each.
    times = sorted({moment for moment, messages in arrivals if messages})
    messages = whole.count(b"data: ")
    assert messages > 10
    assert len(times) > messages / 2, "the reply came in lumps"
    assert times[len(times) // 2] - times[0] > (times[-1] - times[0]) / 10, "it came all at the end"


def test_tools_are_called_through_it(front: Proxy, server: Server) -> None:
    call = {"name": "facts", "arguments": {}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    with front.client() as client:
        reply = client.post("/mcp", json=message, headers={"Accept": "application/json, text/event-stream"})
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert '"structuredContent":{"data":[],"next":null}' in reply.text


def test_a_client_that_leaves_stops_the_child(front: Proxy, server: Server) -> None:
    before = server.finished_tokens()
    connection = front.connect()
    connection.sendall(stream_request(6000))
    received = b""
    while received.count(b"data: ") < 5:
        received += connection.recv(65536)
    assert running(server) == 1
    connection.close()
    eventually(lambda: running(server) == 0, "the child went on after the client left")
    # What the child generated in full is counted; this one was not.
    assert server.finished_tokens() - before < 6000


def test_what_clients_claim_is_overwritten(front: Proxy, server: Server) -> None:
    claimed = {
        "X-Request-ID": "mine",
        "X-Forwarded-For": "203.0.113.7",
        "X-Forwarded-Proto": "gopher",
        "Forwarded": "for=203.0.113.7",
    }
    with front.client() as client:
        reply = client.get("/healthz", headers=claimed)
    [given] = reply.headers.get_list("x-request-id")
    assert re.fullmatch("[0-9a-f]{32}", given)
    logged = last_request(server, given)
    assert (logged["client"], logged["request_id"]) == ("127.0.0.9", given)
    assert "203.0.113.7" not in server.log.read_text()
    # nginx writes its line after the reply has gone out.
    eventually(lambda: given in (front.folder / "access.log").read_text(), "nginx did not log the request")


def test_names_that_are_not_ours(front: Proxy) -> None:
    with front.client() as client:
        foreign = client.get("/healthz", headers={"Host": "evil.example"})
        assert (foreign.status_code, foreign.json()["error"]["code"]) == (421, "unknown_host")
    # A name that is not on the certificate gets no handshake at all.
    raw = socket.create_connection(("127.0.0.1", front.secure), 10)
    with raw, pytest.raises(ssl.SSLError):
        front.trust.wrap_socket(raw, server_hostname="evil.example")
    plain = httpx2.get(f"http://127.0.0.1:{front.plain}/ask?q=1", headers={"Host": "evil.example"})
    assert plain.status_code == 421
    moved = httpx2.get(f"http://127.0.0.1:{front.plain}/ask?q=1", headers={"Host": NAME})
    assert (moved.status_code, moved.headers["location"]) == (308, f"https://{NAME}/ask?q=1")
    # A file that is not there: looked for here and not sent to TLS, which a new machine does not have yet.
    challenge = httpx2.get(
        f"http://127.0.0.1:{front.plain}/.well-known/acme-challenge/none", headers={"Host": NAME}
    )
    assert challenge.status_code == 404


INSIDE = (
    "/admin/health",
    "/metrics",
    "//admin/health",
    "/./admin/health",
    "/v1/../admin/health",
    "/v1/..%2fadmin/health",
    "/%61dmin/health",
    "/admin%2fhealth",
    "/%2e/metrics",
    "/metrics?x=/healthz",
    "/metrics/",
    "/admin/health#x",
    "/healthz/../metrics",
    "/healthz%2f..%2fmetrics",
    "/metrics;x",
    "/Metrics",
    "/\\admin/health",
)


@pytest.mark.parametrize("path", INSIDE)
def test_admin_and_metrics_stay_inside(front: Proxy, path: str) -> None:
    """However the path is written: a client from outside gets neither."""
    with front.connect() as connection:
        head = f"GET {path} HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        whole = b""
        while piece := connection.recv(65536):
            whole += piece
    status = int(whole.split()[1])
    assert status in (400, 403, 404), whole
    assert (
        b"process_resident" not in whole and b"num_requests_running" not in whole and b'"queue"' not in whole
    )


def test_every_admin_route_is_inside(front: Proxy) -> None:
    """From the route table: one with another beginning would need a place in the configuration."""
    with front.client("127.0.0.10") as client:
        for endpoint in ENDPOINTS:
            if endpoint.access == "admin":
                reply = client.request(endpoint.method, endpoint.path)
                assert (reply.status_code, reply.json()["error"]["code"]) == (403, "forbidden"), endpoint.path


def test_the_inside_may_look(front: Proxy) -> None:
    with front.client("127.0.0.1") as client:
        assert "num_requests_running" in client.get("/metrics").text
        assert client.get("/admin/health").json()["status"] == "ok"


def test_too_many_requests_from_one_address_wait(front: Proxy) -> None:
    with front.client("127.0.0.21") as client:
        replies = [client.get("/v1/models") for _ in range(120)]
        refused = [reply for reply in replies if reply.status_code == 429]
        assert replies[0].status_code == 200
        assert refused, "120 requests at once are over the limit"
        for reply in refused:
            assert int(reply.headers["retry-after"]) > 0
            error = reply.json()["error"]
            assert (error["code"], error["request_id"]) == ("rate_limited", reply.headers["x-request-id"])
    with front.client("127.0.0.22") as client:
        assert client.get("/v1/models").status_code == 200, "others are not kept waiting"


@pytest.mark.parametrize("form", ["Authorization: Bearer {}", "authorization: BEARER  {}", "X-API-Key: {}"])
def test_too_many_requests_with_one_key_wait(front: Proxy, form: str) -> None:
    """From many addresses, so that only the key can be what is counted."""
    name, _, value = form.partition(": ")
    headers = {name: value.format(f"one-key-{len(form)}")}
    statuses = []
    for number in range(40):
        with front.client(f"127.0.{len(form)}.{number + 1}") as client:
            statuses.append(client.get("/v1/models", headers=headers).status_code)
    assert statuses[0] == 200
    assert 429 in statuses


def test_too_many_open_requests_of_one_address(front: Proxy, server: Server) -> None:
    streams = []
    try:
        for _ in range(40):
            connection = front.connect("127.0.0.31")
            connection.sendall(stream_request(4000))
            streams.append(connection)
        # 32 may be open. The refused need not be the last: nginx has several workers, and a stream may have ended.
        lines = (connection.recv(65536).split(b"\r\n")[0] for connection in reversed(streams))
        assert any(b" 429 " in line for line in lines)
    finally:
        for connection in streams:
            connection.close()
    eventually(lambda: running(server) == 0, "streams went on after their clients left")


def test_large_bodies_are_refused(front: Proxy) -> None:
    with front.client() as client:
        reply = client.post("/ask", content=b"x" * 5_000_000)
        assert (reply.status_code, reply.json()["error"]["code"]) == (413, "request_too_large")
        long = client.get("/healthz", headers={"X": "y" * 40_000})
        assert (long.status_code, long.json()["error"]["code"]) == (431, "header_too_large")


def test_large_bodies_over_http2_are_refused_in_the_envelope(front: Proxy, tmp_path: Path) -> None:
    """nginx answered with a page of its own: there, a refused body is measured once more at the refusal."""
    body = tmp_path / "body"
    body.write_bytes(b"x" * 5_000_000)
    command = [need("curl", "curl"), "-s", "--http2", "--cacert", str(front.folder / "cert.pem")]
    command += [
        "--noproxy",
        "*",
        "--resolve",
        f"{NAME}:{front.secure}:127.0.0.1",
        "--data-binary",
        f"@{body}",
    ]
    command += ["-w", "\n%{http_version} %{http_code}", f"https://{NAME}:{front.secure}/ask"]
    reply, _, status = subprocess.run(command, capture_output=True, text=True).stdout.rpartition("\n")
    assert (status, json.loads(reply)["error"]["code"]) == ("2 413", "request_too_large")


def test_heads_and_bodies_have_deadlines(tmp_path: Path, server: Server) -> None:
    changed = {"client_header_timeout": "1s", "client_body_timeout": "1s"}
    with (
        proxy(tmp_path, server.url, **changed) as front,
        front.connect() as silent,
        front.connect() as half,
        front.connect() as dripping,
    ):
        half.sendall(b"GET /healthz HTTP/1.1\r\nHost: ")
        dripping.sendall(stream_request(10)[:-5])
        assert silent.recv(100) == b""
        assert ended(half)
        assert ended(dripping)
    assert running(server) == 0


def ended(connection: ssl.SSLSocket) -> bool:
    """Whether the server closes the connection, with or without a word."""
    try:
        while piece := connection.recv(65536):
            assert b" 408 " in piece.split(b"\r\n")[0] or b"request_timeout" in piece
    except (ConnectionResetError, ssl.SSLEOFError):
        pass
    return True


def test_a_gateway_that_is_away(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        nowhere = f"127.0.0.1:{free.getsockname()[1]}"
    with proxy(tmp_path, f"http://{nowhere}") as front, front.client() as client:
        reply = client.post("/ask", content="x")
        assert (reply.status_code, reply.json()["error"]["code"]) == (502, "unavailable")
        assert reply.headers["retry-after"] == "5"


def test_another_gateway_gets_what_one_that_is_away_was_not_sent(tmp_path: Path, server: Server) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        away = f"127.0.0.1:{free.getsockname()[1]}"
    body = {"messages": HI, "max_tokens": 1}
    both = f"{server.url} max_fails=0; server {away}"
    with proxy(tmp_path, both) as front, front.client() as client:
        replies = [client.post("/v1/chat/completions", json=body) for _ in range(4)]
        assert [reply.status_code for reply in replies] == [200] * 4
        assert away in front.errors()


def test_another_gateway_gets_what_a_silent_machine_was_not_sent(tmp_path: Path, server: Server) -> None:
    """As docs/scale.md has it. A listener that takes no more connections answers no SYN, like a machine that is off."""
    body = {"messages": HI, "max_tokens": 1}
    with socket.create_server(("127.0.0.1", 0), backlog=0) as hole, contextlib.ExitStack() as stack:
        for _ in range(3):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(hole.getsockname())
        block = balanced(server.url, f"127.0.0.1:{hole.getsockname()[1]}")
        with (
            proxy(tmp_path, server.url, block, proxy_connect_timeout="1s") as front,
            front.client() as client,
        ):
            for number in range(8):  # some of these keys belong to the silent one
                headers = {"Authorization": f"Bearer hk_{number}"}
                reply = client.post("/v1/chat/completions", json=body, headers=headers)
                assert reply.status_code == 200, reply.text
            assert "timed out" in front.errors()


@pytest.mark.soak
def test_five_hundred_stalled_connections_leave_room(front: Proxy, server: Server) -> None:
    """The one test with a clock: 99 of 100 probes within 100 ms, in the best of three rounds on a busy machine."""
    stalled: list[ssl.SSLSocket] = []
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(1.0):
            for connection in stalled:
                try:
                    connection.send(b"X")
                except OSError:
                    continue  # its deadline has passed

    dripping = threading.Thread(target=drip)
    rounds: list[float] = []
    try:
        while not rounds or (rounds[-1] >= 0.1 and len(rounds) < 3):
            for connection in stalled:
                connection.close()
            stalled[:] = [front.connect(f"127.0.2.{number % 200 + 1}") for number in range(500)]
            for connection in stalled:
                connection.send(b"GET /healthz HTTP/1.1\r\nHost: ")
            if not dripping.is_alive():
                dripping.start()
            rounds.append(slowest_of_a_hundred(front))
        gateway = psutil.Process(server.process.pid).net_connections("tcp")
        assert len([each for each in gateway if each.status == "ESTABLISHED"]) < 50, "they wait in nginx"
    finally:
        stop.set()
        if dripping.ident is not None:
            dripping.join()
        for connection in stalled:
            connection.close()
    assert rounds[-1] < 0.1, rounds


def slowest_of_a_hundred(front: Proxy) -> float:
    """Seconds within which 99 of 100 probes were answered, each on a connection of its own."""
    taken = []
    for _ in range(200):
        begun = time.monotonic()
        with front.connect("127.0.0.41") as connection:
            connection.sendall(f"GET /healthz HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\n\r\n".encode())
            assert b" 200 " in connection.recv(4096)
        taken.append(time.monotonic() - begun)
        time.sleep(0.015)
    return sorted(taken)[len(taken) * 99 // 100 - 1]
