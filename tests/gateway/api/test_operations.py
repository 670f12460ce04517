"""Probes, metrics, admin routes and request ids; reading them does not wake the model."""

from __future__ import annotations

import asyncio
import time

import pytest
from click.testing import CliRunner

from gateway.base.errors import ModelUnavailableError
from gateway.cli.common.files import opened_database
from gateway.cli.server.status import status
from gateway.config.settings import Settings
from gateway.inference.interface import HostHealth, ModelInfo
from gateway.store.migrate import migrations
from tests.gateway.api.conftest import Client, changed, in_process, live
from tests.gateway.api.scripted import ScriptedInference
from tests.gateway.store.full_disk import full_disk
from tests.waiting import PATIENCE

CHAT = {"messages": [{"role": "user", "content": "hi"}]}


async def test_health_and_metrics_do_not_use_the_model(client: Client, inference: ScriptedInference) -> None:
    for path in ("/healthz", "/readyz", "/metrics", "/admin/health", "/v1/models"):
        assert (await client.get(path)).status_code == 200
    assert inference.calls == []
    assert set(inference.events) == {"stats"}


async def test_ready_needs_room_in_the_queue(settings: Settings, inference: ScriptedInference) -> None:
    async with in_process(changed(settings, "model", max_waiting=3), inference) as client:
        inference.state = HostHealth(state="ready", waiting=2)
        assert (await client.get("/readyz")).json() == {"status": "ready"}
        inference.state = HostHealth(state="ready", waiting=3)
        full = await client.get("/readyz")
        assert (full.status_code, full.headers["retry-after"]) == (503, "2")
        assert (await client.get("/healthz")).json() == {"status": "ok"}


async def test_ready_needs_a_host_that_can_serve(client: Client, inference: ScriptedInference) -> None:
    inference.state = HostHealth(state="broken", problem="3 crashes in 60 s", retry_after=20.0)
    reply = await client.get("/readyz")
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "20")
    assert (reply.json()["error"]["code"], reply.json()["error"]["message"]) == (
        "model_unavailable",
        "3 crashes in 60 s",
    )
    inference.state = HostHealth(state="stopped", problem="3 crashes in 60 s")
    assert (await client.get("/readyz")).status_code == 200
    assert inference.calls == []


async def test_ready_needs_a_database_that_takes_writes(
    settings: Settings, inference: ScriptedInference
) -> None:
    with full_disk() as disk:
        async with in_process(settings, inference) as client:
            disk.full = True
            reply = await client.get("/readyz")
            assert (reply.status_code, reply.json()["error"]["code"]) == (503, "disk_full")
            assert "free some disk space" in reply.json()["error"]["message"]
            health = (await client.get("/admin/health")).json()
            assert (health["status"], health["database"]["status"]) == ("degraded", "failed")
            disk.full = False


async def test_hearth_status_shows_why_the_database_fails(
    settings: Settings, inference: ScriptedInference
) -> None:
    with full_disk() as disk:
        async with live(settings, inference) as server:
            disk.full = True
            shown = await asyncio.to_thread(CliRunner().invoke, status, ["--url", server.url])
            disk.full = False
    assert "degraded: http" in shown.output
    assert "problem:    no space left for the database " in shown.output, shown.output


async def test_admin_health(client: Client, inference: ScriptedInference) -> None:
    inference.state = HostHealth(
        state="ready",
        pid=4711,
        rss_bytes=5_000_000,
        uptime_seconds=12.5,
        idle_seconds_left=30.0,
        waiting=1,
        running=2,
        restarts=3,
        model=ModelInfo(name="scripted", n_ctx=512, n_ctx_train=8192),
        cell_bytes=24,
        cache_reason="set by `model.context`",
        stats={"kv_used": 128, "kv_size": 512, "decode_tokens_per_second": 41.5, "snapshots_saved": 3},
    )
    body = (await client.get("/admin/health")).json()
    assert set(body) >= {"status", "host", "queue", "model", "database", "versions"}
    assert body["status"] == "ok"
    host = body["host"]
    assert (host["state"], host["pid"], host["rss_bytes"], host["idle_seconds_left"]) == (
        "ready",
        4711,
        5e6,
        30.0,
    )
    assert (host["uptime_seconds"], host["restarts"], host["problem"]) == (12.5, 3, None)
    assert body["queue"] == {"waiting": 1, "running": 2}
    kept = {"snapshots_saved": 3, "snapshots_restored": 0, "snapshot_bytes": 0, "shared_snapshot_bytes": 0}
    why = {"bytes_per_cell": 24, "reason": "set by `model.context`"}
    assert body["kv"] == {"used": 128, "size": 512, "usage": 0.25, **why, **kept}
    assert body["tokens_per_second"]["decode"] == 41.5
    assert (body["model"]["name"], body["model"]["loaded"]["n_ctx"]) == ("scripted", 512)
    assert (body["database"]["status"], body["database"]["schema_version"]) == (
        "ok",
        migrations()[-1].version,
    )
    assert set(body["versions"]) >= {"hearth", "python", "llama-cpp-python"}

    inference.state = HostHealth(state="broken", problem="3 crashes in 60 s", retry_after=20.0)
    broken = (await client.get("/admin/health")).json()
    assert (broken["status"], broken["host"]["problem"]) == ("degraded", "3 crashes in 60 s")


async def test_health_of_the_local_wiki(client: Client) -> None:
    wiki = (await client.get("/admin/health")).json()["wiki"]
    assert (wiki["source"], wiki["status"], wiki["pages"]) == ("local", "ok", 0)


async def test_an_unreachable_wiki_is_reported_and_asked_only_for_questions(
    settings: Settings, inference: ScriptedInference
) -> None:
    nobody = changed(settings, "wiki", api_url="http://127.0.0.1:1/api.php")
    async with in_process(nobody, inference) as client:
        before = (await client.get("/admin/health")).json()
        assert (before["status"], before["wiki"]["status"], before["wiki"]["requests"]) == ("ok", "unused", 0)
        asked = await client.post("/ask", json={"question": "Who created Befunge?"})
        assert asked.status_code == 503
        assert asked.json()["error"]["code"] == "wiki_unavailable"
        assert int(asked.headers["retry-after"]) > 0
        after = (await client.get("/admin/health")).json()
        assert (after["status"], after["wiki"]["source"], after["wiki"]["status"]) == (
            "degraded",
            "api",
            "failing",
        )
        assert "http://127.0.0.1:1/api.php" in after["wiki"]["problem"]


async def test_warm_and_unload(client: Client, inference: ScriptedInference) -> None:
    warm = await client.post("/admin/host/warm")
    assert warm.json()["host"]["state"] == "ready"
    unload = await client.post("/admin/host/unload", headers={"Content-Type": "application/json"})
    assert unload.json()["host"]["state"] == "stopped"
    assert inference.events == ["warm", "unload"]


async def test_metrics(client: Client, inference: ScriptedInference) -> None:
    await client.post("/v1/chat/completions", json=CHAT)
    await client.get("/wp-login.php")
    inference.state = HostHealth(
        state="ready", waiting=1, running=2, restarts=3, stats={"kv_used": 1, "kv_size": 4}
    )
    reply = await client.get("/metrics")
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = dict(line.rsplit(" ", 1) for line in reply.text.splitlines() if not line.startswith("#"))
    expected = {
        "time_to_first_token_seconds_count": 1,
        "inter_token_latency_seconds_count": 4,
        "num_requests_running": 2,
        "num_requests_waiting": 1,
        "kv_cache_usage_perc": 0.25,
        "prompt_tokens_total": 5,
        "cached_prompt_tokens_total": 2,
        "generation_tokens_total": 5,
        "model_host_restarts_total": 3,
        'model_host_state{state="ready"}': 1,
        'model_host_state{state="broken"}': 0,
        'http_requests_total{method="POST",route="/v1/chat/completions",status="200"}': 1,
        'http_requests_total{method="GET",route="unknown",status="404"}': 1,
    }
    assert {name: float(lines[name]) for name in expected} == expected


@pytest.mark.parametrize("given", ["a", "A-z_0.9", "x" * 128])
async def test_valid_request_ids_are_used(client: Client, given: str) -> None:
    for path in ("/healthz", "/missing"):
        assert (await client.get(path, headers={"X-Request-ID": given})).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "a;b", "é"])
async def test_other_request_ids_are_replaced(client: Client, given: str) -> None:
    made = (await client.get("/healthz", headers={b"X-Request-ID": given.encode()})).headers["x-request-id"]
    assert made != given
    assert 0 < len(made) <= 128


async def test_permanent_and_temporary_failures_differ(client: Client, inference: ScriptedInference) -> None:
    inference.error = ModelUnavailableError("the file is corrupt", code="model_corrupt")
    permanent = await client.post("/v1/chat/completions", json=CHAT)
    assert permanent.status_code == 503
    assert permanent.headers["x-should-retry"] == "false"
    assert "retry-after" not in permanent.headers
    inference.error = ModelUnavailableError("starting", retry_after=0.2)
    passing = await client.post("/v1/chat/completions", json=CHAT)
    assert passing.headers["retry-after"] == "1"
    assert "x-should-retry" not in passing.headers


async def test_unknown_methods_do_not_grow_the_metrics(client: Client) -> None:
    for number in range(3):
        await client.request(f"BREW{number}", "/healthz")
    text = (await client.get("/metrics")).text
    assert "BREW" not in text
    assert 'method="other"' in text


async def test_a_record_that_cannot_be_written_costs_no_reply(client: Client, settings: Settings) -> None:
    name = (await client.post("/v1/conversations", json={})).json()["id"]
    with opened_database(settings.data_dir / "hearth.db") as database:
        database.write_sync(lambda connection: connection.execute("ALTER TABLE requests RENAME TO gone"))
    for path, body in (
        ("/v1/chat/completions", CHAT),
        ("/v1/chat/completions", CHAT | {"n": 2}),
        ("/v1/responses", {"input": "hi"}),
        ("/api/chat", {**CHAT, "model": "default"}),
        ("/v1/messages", {**CHAT, "model": "default", "max_tokens": 9}),
        ("/ask", {"question": "Who created Befunge?"}),
        (f"/v1/conversations/{name}/messages", {"text": "hi"}),
    ):
        streamed = {} if path == "/ask" else {"stream": True}
        for fields in ({}, streamed):
            reply = await client.post(path, json=body | fields)
            assert reply.status_code == 200, (path, reply.text)
            assert '"error":{' not in reply.text, (path, reply.text)
    # The record of a request is written after its reply.
    deadline = time.monotonic() + PATIENCE
    while (failed := await _failed_records(client)) < 14:
        assert time.monotonic() < deadline, (
            f"{failed} records failed; 14 generations of a client make one each"
        )
        await asyncio.sleep(0.005)


async def test_an_answer_says_that_its_record_is_lost(
    settings: Settings, inference: ScriptedInference, capsys: pytest.CaptureFixture[str]
) -> None:
    with full_disk() as disk:
        async with in_process(settings, inference) as client:
            question = {"question": "Who created Befunge?"}
            assert "record" not in (await client.post("/ask", json=question)).text
            disk.full = True
            reply = await client.post("/ask", json=question)
            disk.full = False
            assert reply.status_code == 200 and reply.json()["answer"]
            [lost] = [each for each in reply.json()["skipped"] if "record" in each["title"]]
            assert "free some disk space" in lost["reason"]
            assert await _failed_records(client) == 1
    logged = capsys.readouterr().out
    assert "free some disk space" in logged and "Traceback" not in logged


async def _failed_records(client: Client) -> float:
    metrics = (await client.get("/metrics")).text
    return float(metrics.partition("\nrequest_records_failed_total ")[2].split("\n")[0])
