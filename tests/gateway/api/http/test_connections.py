"""Real sockets: clients that leave, stall, send too much, or are too many."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import pytest

from gateway.config.settings import Settings
from tests.gateway.api.conftest import LiveServer, changed, client_of, live
from tests.gateway.api.scripted import ScriptedInference
from tests.waiting import PATIENCE

CHAT = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
HEAD = (
    "POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {n}\r\n\r\n"
)
STREAM = CHAT[:-1] + b', "stream": true}'


def request(path: str, body: bytes, accept: str = "*/*") -> bytes:
    head = HEAD.format(path=path, n=len(body)).replace("\r\n\r\n", f"\r\nAccept: {accept}\r\n\r\n")
    return head.encode() + body


async def read_all(reader: asyncio.StreamReader) -> bytes:
    return await asyncio.wait_for(reader.read(), PATIENCE)


def status_and_error(raw: bytes) -> tuple[int, str]:
    """Status and error code, after a check of the envelope and the request id."""
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"x-request-id: " in head.lower()
    error = json.loads(body)["error"]
    assert error["request_id"].encode() in head
    return int(head.split()[1]), error["code"]


@pytest.mark.parametrize(
    ("path", "body", "accept"),
    [
        ("/v1/chat/completions", CHAT, "*/*"),
        ("/v1/chat/completions", STREAM, "*/*"),
        ("/ask", b'{"question": "Who created Befunge?"}', "application/json"),
        ("/ask", b'{"question": "Who created Befunge?"}', "text/event-stream"),
    ],
)
async def test_a_client_that_leaves_cancels_the_generation(
    server: LiveServer, inference: ScriptedInference, path: str, body: bytes, accept: str
) -> None:
    inference.delay = 3600.0  # no further piece
    _, writer = await server.connect()
    writer.write(request(path, body, accept))
    await inference.begun.acquire()
    writer.close()
    await asyncio.wait_for(inference.cancelled.wait(), PATIENCE)
    assert inference.running == 0
    assert inference.finished == 0


async def test_a_client_that_leaves_while_the_model_loads(
    server: LiveServer, inference: ScriptedInference
) -> None:
    inference.loading = 3600.0
    _, writer = await server.connect()
    writer.write(request("/v1/chat/completions", STREAM))
    await inference.begun.acquire()
    writer.close()
    await asyncio.wait_for(inference.cancelled.wait(), PATIENCE)


@pytest.mark.parametrize("sent", [b"", b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
async def test_a_head_has_a_deadline(settings: Settings, inference: ScriptedInference, sent: bytes) -> None:
    async with live(changed(settings, "server", header_timeout_seconds=0.2), inference) as server:
        reader, writer = await server.connect()
        writer.write(sent)
        begun = time.monotonic()
        raw = await read_all(reader)
        assert time.monotonic() - begun > 0.1
        assert status_and_error(raw) == (408, "request_timeout") if sent else raw == b""
        writer.close()


async def test_a_dripping_second_head_has_a_deadline_too(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with live(changed(settings, "server", header_timeout_seconds=0.3), inference) as server:
        reader, writer = await server.connect()
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        replies = asyncio.create_task(read_all(reader))
        begun = time.monotonic()
        for byte in b"GET /healthz HTTP/1.1\r\nX: ".ljust(1000, b"y"):
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)
            if replies.done():
                break
        assert time.monotonic() - begun > 0.2
        assert b" 408 " in await replies
        writer.close()


async def test_a_body_has_a_deadline(settings: Settings, inference: ScriptedInference) -> None:
    async with live(changed(settings, "server", body_timeout_seconds=0.2), inference) as server:
        reader, writer = await server.connect()
        writer.write(HEAD.format(path="/v1/chat/completions", n=50).encode() + b"{")
        assert status_and_error(await read_all(reader)) == (408, "request_timeout")
        writer.close()


async def test_declared_and_streamed_bodies_over_the_limit(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with live(changed(settings, "server", max_body_bytes=100_000), inference) as server:
        big = b"x" * 300_000

        async def chunks() -> AsyncIterator[bytes]:
            for start in range(0, len(big), 10_000):
                yield big[start : start + 10_000]

        headers = {"Content-Type": "application/json"}
        async with client_of(server) as client:
            declared = await client.post("/v1/chat/completions", content=big, headers=headers)
            streamed = await client.post("/v1/chat/completions", content=chunks(), headers=headers)
            for reply in (declared, streamed):
                assert reply.status_code == 413
                assert reply.json()["error"]["code"] == "request_too_large"
                assert reply.headers["connection"] == "close"
            assert (await client.get("/healthz")).status_code == 200
    assert inference.calls == []


async def test_a_refusal_before_the_body_is_read_closes_the_connection(server: LiveServer) -> None:
    reader, writer = await server.connect()
    head = HEAD.format(path="/v1/chat/completions", n=1000).replace("application/json", "text/plain")
    writer.write(head.encode() + b"x")
    raw = await read_all(reader)
    assert status_and_error(raw) == (415, "unsupported_media_type")
    assert b"connection: close" in raw.lower()
    writer.close()


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 200_000, 431, "header_too_large"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "invalid_http"),
        (b"GET / HTTP/1.1\r\n\r\n", 400, "invalid_http"),
    ],
)
async def test_malformed_requests(server: LiveServer, raw: bytes, status: int, code: str) -> None:
    reader, writer = await server.connect()
    writer.write(raw)
    assert status_and_error(await read_all(reader)) == (status, code)
    writer.close()


async def test_connections_over_the_limit_are_refused(
    settings: Settings, inference: ScriptedInference
) -> None:
    async with live(changed(settings, "server", max_connections=3), inference) as server:
        held = [await server.connect() for _ in range(3)]
        reader, writer = await server.connect()
        raw = await read_all(reader)
        assert status_and_error(raw) == (503, "overloaded")
        assert b"retry-after: 1" in raw.lower()
        for _, each in [*held, (reader, writer)]:
            each.close()
        await asyncio.sleep(0.05)
        async with client_of(server) as client:
            assert (await client.get("/healthz")).status_code == 200


async def test_replies_name_no_software(server: LiveServer) -> None:
    async with client_of(server) as client:
        assert "server" not in (await client.get("/healthz")).headers


async def test_silence_is_filled_with_comments(
    server: LiveServer, inference: ScriptedInference, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.api.streaming.streams._PING_SECONDS", 0.05)
    inference.delay = 0.2
    async with (
        client_of(server) as client,
        client.stream(
            "POST", "/v1/chat/completions", content=STREAM, headers={"Content-Type": "application/json"}
        ) as reply,
    ):
        text = "".join([piece async for piece in reply.aiter_text()])
    assert ": ping\n\n" in text
    assert text.endswith("data: [DONE]\n\n")
