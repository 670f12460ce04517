"""Requests that two programs may frame differently (RFC 9112) are refused, and the connection is closed."""

from __future__ import annotations

import asyncio

import pytest

from tests.gateway.api.conftest import LiveServer
from tests.gateway.api.http.test_connections import CHAT, read_all, status_and_error
from tests.gateway.api.scripted import ScriptedInference

INNER = b"GET /admin/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
CHUNKED = b"%x\r\n%b\r\n0\r\n\r\n" % (len(CHAT), CHAT)
LENGTH = b"Content-Length: %d" % len(CHAT)


def head(*lines: bytes, version: bytes = b"1.1", end: bytes = b"\r\n") -> bytes:
    first = b"POST /v1/chat/completions HTTP/" + version
    return end.join([first, b"Host: 127.0.0.1", b"Content-Type: application/json", *lines, b"", b""])


CODED = b"Transfer-Encoding: chunked"
REFUSED = {
    "both lengths": head(LENGTH, CODED) + CHUNKED,
    "both lengths, the other way round": head(CODED, LENGTH) + CHUNKED,
    "both lengths, of nothing": head(b"Content-Length: 0", CODED) + CHUNKED,
    "bare line feeds": head(LENGTH, end=b"\n") + CHAT,
    "a bare line feed after the request line": head(LENGTH).replace(b"\r\n", b"\n", 1) + CHAT,
    "a bare line feed between fields": head(b"X: 1\nY: 2", LENGTH) + CHAT,
    "a bare line feed at the end of the head": head(LENGTH)[:-4] + b"\n\n" + CHAT,
    "half a bare line feed at the end of the head": head(LENGTH)[:-2] + b"\n" + CHAT,
    "a bare carriage return in a field": head(b"X: 1\rY: 2", LENGTH) + CHAT,
    "a folded field": head(b"X: 1\r\n 2", LENGTH) + CHAT,
    "a folded length": head(b"Content-Length:\r\n %d" % len(CHAT)) + CHAT,
    "a fold before the first field": head().replace(b"\r\nHost", b"\r\n Host") + CHAT,
    "two lengths": head(LENGTH, b"Content-Length: 5") + CHAT,
    "two lengths in one field": head(LENGTH + b", 5") + CHAT,
    "a signed length": head(b"Content-Length: +%d" % len(CHAT)) + CHAT,
    "a length in hexadecimal": head(b"Content-Length: 0x%x" % len(CHAT)) + CHAT,
    "no length": head(b"Content-Length:") + CHAT,
    "a blank before the colon": head(LENGTH.replace(b":", b" :")) + CHAT,
    "a tabulator before the colon": head(CODED.replace(b":", b"\t:")) + CHUNKED,
    "chunked not last": head(CODED + b", identity") + CHUNKED,
    "chunked not known": head(b"Transfer-Encoding: xchunked") + CHUNKED,
    "chunked and another": head(b"Transfer-Encoding: gzip, chunked") + CHUNKED,
    "chunked twice": head(CODED, CODED) + CHUNKED,
    "chunked after a vertical tabulator": head(b"Transfer-Encoding: \x0bchunked") + CHUNKED,
    "chunked in HTTP/1.0": head(CODED, version=b"1.0") + CHUNKED,
    "both lengths in HTTP/1.0": head(CODED, LENGTH, version=b"1.0") + CHUNKED,
    "two hosts": head(b"Host: 127.0.0.1", LENGTH) + CHAT,
}
# Valid heads with invalid bodies: the handler waits for the body.
IN_BODY = {
    "a bare line feed after a chunk's size": CHUNKED.replace(b"\r\n", b"\n", 1),
    "a bare line feed in a chunk's extension": CHUNKED.replace(b"\r\n", b";\nx\r\n", 1),
    "a bare carriage return in a chunk's extension": CHUNKED.replace(b"\r\n", b";\rx\r\n", 1),
    "no line end after a chunk": CHUNKED.replace(CHAT + b"\r\n", CHAT + b"xx"),
    "a bare line feed after a chunk": CHUNKED.replace(CHAT + b"\r\n", CHAT + b"\n"),
    "bare line feeds in trailers": CHUNKED.replace(b"0\r\n\r\n", b"0\r\nX: y\n\n"),
    "a bare line feed instead of trailers": CHUNKED.replace(b"0\r\n\r\n", b"0\r\n\n"),
    "a folded trailer": CHUNKED.replace(b"0\r\n\r\n", b"0\r\nX: y\r\n z\r\n\r\n"),
    "a negative size": b"-1\r\n" + CHUNKED,
}


async def answered(server: LiveServer, *pieces: bytes) -> bytes:
    """Read until the server closes the connection; our side stays open."""
    reader, writer = await server.connect()
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
    try:
        return await read_all(reader)
    finally:
        writer.close()


@pytest.mark.parametrize("raw", REFUSED.values(), ids=REFUSED)
async def test_a_doubtful_head_is_refused_and_the_connection_closed(
    server: LiveServer, inference: ScriptedInference, raw: bytes
) -> None:
    reply = await answered(server, raw + INNER)
    assert reply.count(b"HTTP/1.1 ") == 1
    assert status_and_error(reply) == (400, "invalid_http")
    assert b"connection: close" in reply.lower()
    assert inference.calls == []


async def test_a_doubtful_head_in_pieces(server: LiveServer, inference: ScriptedInference) -> None:
    """Also if it arrives in pieces, or second on its connection."""
    raw = REFUSED["a bare line feed between fields"]
    reply = await answered(server, *(bytes([byte]) for byte in raw))
    assert status_and_error(reply) == (400, "invalid_http")
    first = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    reply = await answered(server, first + raw + INNER)
    assert reply.count(b"HTTP/1.1 ") == 2
    assert status_and_error(reply[reply.rindex(b"HTTP/1.1 ") :]) == (400, "invalid_http")
    assert inference.calls == []


@pytest.mark.parametrize("body", IN_BODY.values(), ids=IN_BODY)
async def test_a_doubtful_body_is_refused_and_the_connection_closed(
    server: LiveServer, inference: ScriptedInference, body: bytes
) -> None:
    reply = await answered(server, head(CODED) + body + INNER)
    assert reply.count(b"HTTP/1.1 ") == 1
    assert status_and_error(reply) == (400, "invalid_http")
    assert inference.calls == []


@pytest.mark.parametrize(
    "raw",
    [
        head(LENGTH) + CHAT,
        head(LENGTH, LENGTH) + CHAT,  # equal lengths are valid
        head(CODED) + CHUNKED,
        head(CODED.upper()) + CHUNKED,
        head(CODED) + b"0;x=y\r\nX: y\r\n\r\n".join(CHUNKED.rsplit(b"0\r\n\r\n", 1)),
        head(LENGTH, version=b"1.0") + CHAT,
    ],
)
async def test_valid_requests_are_answered(
    server: LiveServer, inference: ScriptedInference, raw: bytes
) -> None:
    closing = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    reply = await asyncio.wait_for(answered(server, raw + closing), 30)
    assert reply.count(b"HTTP/1.1 200 ") == (1 if b"HTTP/1.0" in raw else 2)
    assert len(inference.calls) == 1
