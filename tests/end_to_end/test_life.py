"""The life of the whole program: start, idle, kills, restarts. Real processes, real model."""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import httpx2
import pytest

from tests.end_to_end.conftest import StartServer
from tests.end_to_end.server import Server, alive
from tests.end_to_end.storm import Storm
from tests.waiting import eventually

# More, with what they cost: HEARTH_TEST_KILLS=500 python -m pytest -s -m soak tests/end_to_end/test_life.py
KILLS = int(os.environ.get("HEARTH_TEST_KILLS", "60"))
SOAK = [pytest.mark.soak, pytest.mark.timeout(60 + 20 * KILLS)]
MEGABYTE = 1024 * 1024
NOTICED_SECONDS = 40.0  # a host that hangs: 12, and whatever a busy machine adds
BACK_SECONDS = 20.0  # service after the last kill: 1, and loads on a busy machine


def chat(server: Server, *, tokens: int = 8, **fields: object) -> httpx2.Response:
    body = {
        "model": "default",
        "messages": [{"role": "user", "content": "hello there"}],
        "max_tokens": tokens,
    }
    return server.client.post("/v1/chat/completions", json=body | {"ignore_eos": True} | fields)


def test_idle_host_goes_and_comes_back(start_server: StartServer) -> None:
    server = start_server("--idle", "1")
    assert server.host_pid() is None
    assert chat(server).status_code == 200
    first = server.host_pid()
    assert first is not None
    for _ in range(5):  # looking does not count as use
        server.client.get("/healthz")
        server.client.get("/metrics")
        server.health()
        time.sleep(0.1)
    eventually(lambda: server.health()["host"]["state"] == "stopped", "the idle host was not let go")
    assert not alive(first)
    assert server.children() == []
    assert server.rss() < 80 * MEGABYTE
    assert chat(server).status_code == 200
    assert server.host_pid() not in (None, first)


def test_keep_alive_zero_unloads_at_once(start_server: StartServer) -> None:
    server = start_server()
    assert chat(server, keep_alive=0).status_code == 200
    eventually(lambda: server.health()["host"]["state"] == "stopped", "keep_alive 0 did not unload")


def test_keep_alive_zero_of_a_question_unloads_once_at_its_end(start_server: StartServer) -> None:
    server = start_server()
    reply = server.client.post("/ask", json={"question": "Who created Befunge?", "keep_alive": 0})
    assert reply.status_code == 200
    eventually(lambda: server.health()["host"]["state"] == "stopped", "keep_alive 0 did not unload")
    assert server.log.read_text().count("host_starting") == 1


def test_killed_gateway_takes_its_child_along(start_server: StartServer) -> None:
    server = start_server()
    assert chat(server).status_code == 200
    family = [p.pid for p in server.children()]
    assert family
    server.kill()
    eventually(lambda: not any(alive(pid) for pid in family), "the model host outlived the gateway")


def test_stop_leaves_nothing(start_server: StartServer) -> None:
    server = start_server()
    assert chat(server).status_code == 200
    family = [p.pid for p in server.children()]
    assert server.stop() == 0
    assert not any(alive(pid) for pid in family)


def test_prompt_over_the_limit_is_refused_with_counts(start_server: StartServer) -> None:
    server = start_server()
    reply = chat(server, messages=[{"role": "user", "content": "word " * 20_000}])
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["code"] == "prompt_too_long"
    # By these words clients of both dialects know that a shorter prompt would help.
    assert error["message"].startswith(
        "the prompt is too long: this model's maximum context length is 8192 tokens"
    )
    assert chat(server).status_code == 200


# Both children have one supervisor, so the long runs are of one of them.
@pytest.mark.parametrize(
    ("embedding", "kills", "pause"),
    [
        pytest.param(False, 15, 0.6, id="chat"),
        pytest.param(True, 15, 0.6, id="embedding"),
        pytest.param(False, KILLS, 1.2, marks=SOAK, id="chat-long"),
    ],
)
def test_service_is_back_after_kills_at_any_time(
    start_server: StartServer, tiny_embedding_model: Path, embedding: bool, kills: int, pause: float
) -> None:
    """Eight clients meet nothing but replies and retriable errors, though most kills hit a host that loads."""
    server = start_server(env={"HEARTH_EMBEDDING__MODEL": str(tiny_embedding_model)} if embedding else None)
    chance = random.Random(7)
    with Storm(server, clients=8, embedding=embedding) as storm:
        storm.served_since(0.0)
        for _ in range(kills):
            time.sleep(chance.uniform(0.2, pause))
            storm.kill()
        back = storm.served_since(time.monotonic())
    print(f"{kills} kills, {storm}, service back after {back:.2f} s")
    assert storm.wrong == []
    assert back < BACK_SECONDS
    # A kill costs each client what it has open, and what it sends until the death is noticed; not hundreds.
    assert storm.retriable <= 5 * 8 * kills


# Each takes the 10 s of the missed beats; tests/gateway/inference/process/test_heartbeat.py has quicker ones.
@pytest.mark.parametrize(
    ("embedding", "stops"),
    [
        pytest.param(False, 1, id="chat"),
        pytest.param(True, 1, id="embedding"),
        pytest.param(False, max(4, KILLS // 20), marks=SOAK, id="chat-long"),
    ],
)
def test_a_host_that_hangs_is_replaced(
    start_server: StartServer, tiny_embedding_model: Path, embedding: bool, stops: int
) -> None:
    server = start_server(env={"HEARTH_EMBEDDING__MODEL": str(tiny_embedding_model)} if embedding else None)
    with Storm(server, clients=2, embedding=embedding) as storm:
        storm.served_since(0.0)
        noticed = []
        for _ in range(stops):
            assert server.client.get("/readyz").status_code == 200
            pid, stopped = storm.stop(), time.monotonic()
            unready = eventually(lambda: not_ready(server), "/readyz does not follow")
            assert (unready.status_code, unready.json()["error"]["code"]) == (503, "model_unavailable")
            assert "has not answered" in unready.text
            eventually(lambda pid=pid: not alive(pid), "nobody noticed")
            noticed.append(time.monotonic() - stopped)
            assert noticed[-1] < NOTICED_SECONDS
            storm.served_since(time.monotonic())
    print(f"{stops} stops, {storm}, noticed after {max(noticed):.1f} s at most")
    assert storm.wrong == []
    assert server.client.get("/readyz").status_code == 200


def not_ready(server: Server) -> httpx2.Response | None:
    """The reply of /readyz that says so."""
    reply = server.client.get("/readyz")
    return reply if reply.status_code != 200 else None


def test_clients_that_leave_do_not_keep_the_model_from_loading(start_server: StartServer) -> None:
    server = start_server()
    for _ in range(4):
        with pytest.raises(httpx2.ReadTimeout):
            server.client.post("/ask", content="x", timeout=0.05)
    eventually(lambda: server.health()["host"]["state"] == "ready", "the load was given up")
    assert server.log.read_text().count("host_starting") == 1


def test_a_model_that_cannot_be_loaded_makes_the_server_not_ready(
    start_server: StartServer, tiny_model: Path, tmp_path: Path
) -> None:
    model = tmp_path / "replaced.gguf"
    model.write_bytes(tiny_model.read_bytes())
    server = start_server("--model", str(model))
    model.write_text("text in place of the model\n")
    reply = not_ready(server)
    assert reply is not None
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "model_corrupt")
    assert f"{model} is not a GGUF file" in reply.text
    health = server.health()
    assert (health["status"], health["host"]["state"]) == ("degraded", "stopped")
    assert "not a GGUF file" in health["host"]["problem"]
    assert server.children() == [], "looking started a host"


def test_a_damaged_model_makes_the_server_not_ready_once_it_was_tried(
    start_server: StartServer, tiny_model: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(tiny_model.read_bytes()[:300_000])
    server = start_server("--model", str(damaged))
    assert server.client.get("/readyz").status_code == 200, "only loading tells"
    refused = chat(server)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "model_corrupt")
    reply = server.client.get("/readyz")
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "model_corrupt")
    damaged.write_bytes(tiny_model.read_bytes())
    assert server.client.get("/readyz").status_code == 200
    assert chat(server).status_code == 200


def test_data_directory_is_private(start_server: StartServer) -> None:
    server = start_server()
    files = [p for p in Path(server.data_dir).rglob("*.db*") if p.is_file()]
    assert files
    assert all(p.stat().st_mode & 0o077 == 0 for p in files)
