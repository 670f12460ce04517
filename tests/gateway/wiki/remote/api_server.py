"""An ``api.php`` on loopback that misbehaves on demand: each request takes the next of the configured replies."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Write = Callable[[asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Request:
    """What a client sent, and when."""

    path: str
    parameters: dict[str, str]
    headers: dict[str, str]
    at: float


@dataclass
class ApiServer:
    """Sends ``replies`` in turn, then acts as a wiki where every page exists with the same text."""

    url: str = ""
    replies: list[Write] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    seconds: float = 0.0  # that a normal reply takes
    now: int = 0
    most_at_once: int = 0
    address: str = "http://wiki.test/wiki/"  # of pages

    @property
    def api_url(self) -> str:
        return f"{self.url}/api.php"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await _head(reader):
                self.now += 1
                self.most_at_once = max(self.most_at_once, self.now)
                try:
                    await self._reply(head, writer)
                finally:
                    self.now -= 1
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _reply(self, head: list[str], writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(head[0].split(" ")[1])
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:])}
        parameters = dict(parse_qsl(parts.query))
        self.requests.append(Request(parts.path, parameters, headers, time.monotonic()))
        if self.replies:
            await self.replies.pop(0)(writer)
            return
        await asyncio.sleep(self.seconds)
        await reply(self.answer(parameters))(writer)

    def answer(self, asked: dict[str, str]) -> Any:
        if asked["action"] == "parse":
            return {"parse": {"title": asked["page"], "pageid": 1, "revid": 7, "text": "<p>Text.</p>"}}
        titles = asked["titles"].split("|") if "titles" in asked else ["Found"]
        return {"query": {"pages": [self.page(title) for title in titles]}}

    def page(self, title: str, **more: Any) -> dict[str, Any]:
        known = {"ns": 0, "title": title, "pageid": 1, "lastrevid": 7, "index": 1}
        return known | {"canonicalurl": self.address + title.replace(" ", "_")} | more


def raw(data: bytes) -> Write:
    """These bytes, then the end of the connection."""

    async def write(writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        writer.close()

    return write


def reply(content: Any, status: int = 200, **headers: str) -> Write:
    """A complete reply; encodes anything but bytes as JSON."""
    body = content if isinstance(content, bytes) else json.dumps(content).encode()

    async def write(writer: asyncio.StreamWriter) -> None:
        given = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"HTTP/1.1 {status} Whatever", *(f"{name}: {value}" for name, value in given.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    return write


def failed(code: str, **headers: str) -> Write:
    """An error of the API, which comes with status 200."""
    return reply({"error": {"code": code, "info": f"told why: {code}"}}, **headers)


async def drip(writer: asyncio.StreamWriter) -> None:
    """A reply that never ends, a byte at a time."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{")
    while not writer.is_closing():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def silence(writer: asyncio.StreamWriter) -> None:
    """No reply at all."""
    await asyncio.Event().wait()


@asynccontextmanager
async def serving(
    tls: ssl.SSLContext | None = None, made: ApiServer | None = None
) -> AsyncIterator[ApiServer]:
    """A server at a free port of 127.0.0.1."""
    api = made or ApiServer()
    tasks: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await api.serve(reader, writer)
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    api.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield api
    finally:
        server.close()
        open_tasks = list(tasks)
        for task in open_tasks:
            task.cancel()
        await asyncio.gather(*open_tasks, return_exceptions=True)


async def _head(reader: asyncio.StreamReader) -> list[str]:
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return []
    return data.decode("latin-1").strip().split("\r\n")
