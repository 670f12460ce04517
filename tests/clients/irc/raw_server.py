"""A server that a test plays by hand: it shows every byte that a client sends, and sends what no good server would."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

Play = Callable[["Peer"], Awaitable[None]]


class Peer:
    """One connection. ``received`` is every byte so far."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.received = b""
        self._reader = reader
        self._writer = writer

    async def line(self) -> str:
        """The next line, without its CR LF; it has to end in both."""
        raw = await self._reader.readuntil(b"\n")
        self.received += raw
        assert raw.endswith(b"\r\n"), raw
        return raw[:-2].decode()

    async def until(self, start: str) -> str:
        """Read lines up to one that begins with ``start``."""
        while not (line := await self.line()).startswith(start):
            pass
        return line

    def send(self, *lines: str | bytes) -> None:
        for line in lines:
            self._writer.write((line if isinstance(line, bytes) else line.encode()) + b"\r\n")

    async def rest(self) -> None:
        """Read until the client closes."""
        while chunk := await self._reader.read(65536):
            self.received += chunk

    async def welcome(self, nick: str = "hearth", caps: str = "") -> None:
        """Register the client, with these capabilities on offer."""
        await self.until("CAP LS")
        self.send(f":s CAP * LS :{caps}")
        await self.until("CAP END")
        self.send(f":s 001 {nick} :hi", f":s 422 {nick} :no motd")

    async def let_in(self, channel: str, nick: str = "hearth") -> None:
        """Answer the client's JOIN."""
        await self.until(f"JOIN {channel}")
        self.send(f":{nick}!~h@host JOIN {channel}", f":s 366 {nick} {channel} :end")


class RawServer:
    """Plays ``scripts``, one a connection; the last one again and again."""

    def __init__(self, *scripts: Play) -> None:
        self._scripts = scripts
        self.peers: list[Peer] = []
        self.errors: list[BaseException] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        script = self._scripts[min(len(self.peers), len(self._scripts)) - 1]
        try:
            await script(peer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except (AssertionError, ValueError) as error:
            self.errors.append(error)
        finally:
            writer.close()


@asynccontextmanager
async def raw_server(*scripts: Play) -> AsyncIterator[RawServer]:
    """Listen on a loopback port; a script's failed assertion fails the test."""
    made = RawServer(*scripts)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()
    assert made.errors == []
