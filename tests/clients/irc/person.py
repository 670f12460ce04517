"""A person's IRC client over a raw socket: says lines, and waits for lines."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

PATIENCE = 30.0


class Person:
    """``lines`` are all lines received, as bytes without their line end."""

    def __init__(self, nick: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.nick = nick
        self.lines: list[bytes] = []
        self._reader = reader
        self._writer = writer
        self._seen = 0  # lines that an earlier wait has looked at
        self._arrived = asyncio.Condition()
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while line := await self._reader.readline():
            if line.startswith(b"PING"):
                self.send(line.decode().strip().replace("PING", "PONG", 1))
            async with self._arrived:
                self.lines.append(line.rstrip(b"\r\n"))
                self._arrived.notify_all()

    def send(self, line: str) -> None:
        self._writer.write(line.encode() + b"\r\n")

    def say(self, target: str, text: str) -> None:
        self.send(f"PRIVMSG {target} :{text}")

    async def expect(self, pattern: str, seconds: float = PATIENCE) -> re.Match[str]:
        """The next line, after those of earlier calls, in which ``pattern`` is found."""
        try:
            async with asyncio.timeout(seconds), self._arrived:
                while True:
                    while self._seen < len(self.lines):
                        line = self.lines[self._seen].decode("utf-8", "surrogateescape")
                        self._seen += 1
                        if match := re.search(pattern, line):
                            return match
                    await self._arrived.wait()
        except TimeoutError:
            last = b"\n".join(self.lines[-15:]).decode("utf-8", "replace")
            raise AssertionError(f"{self.nick} waited in vain for {pattern!r}; last:\n{last}") from None

    async def answer(self, nick: str = "hearth", seconds: float = PATIENCE) -> str:
        """The next text that ``nick`` says, wherever."""
        found = await self.expect(
            rf"^(?:@\S+ )?:{re.escape(nick)}!\S+ (?:PRIVMSG|NOTICE) \S+ :(.*)$", seconds
        )
        return found[1]

    async def private(self, nick: str = "hearth") -> str:
        """The next text that ``nick`` says to this person alone."""
        found = await self.expect(
            rf"^(?:@\S+ )?:{re.escape(nick)}!\S+ (?:PRIVMSG|NOTICE) {re.escape(self.nick)} :(.*)$"
        )
        return found[1]

    async def expect_from(self, nick: str, start: str) -> str:
        """The next text of ``nick`` that begins with ``start``."""
        while not (text := await self.answer(nick)).startswith(start):
            pass
        return text

    def said_by(self, nick: str) -> list[str]:
        """All texts of ``nick`` so far."""
        pattern = re.compile(rf"^(?:@\S+ )?:{re.escape(nick)}!\S+ (?:PRIVMSG|NOTICE) \S+ :(.*)$")
        texts = [line.decode("utf-8", "replace") for line in self.lines]
        return [match[1] for text in texts if (match := pattern.match(text))]

    async def quiet(self) -> None:
        """Wait until the server has dealt with everything that was sent before."""
        mark = f"mark{len(self.lines)}"
        self.send(f"PING {mark}")
        await self.expect(rf"PONG .*{mark}")

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait({self._task})
        self._writer.close()
        await asyncio.wait({asyncio.ensure_future(self._writer.wait_closed())}, timeout=1)


@asynccontextmanager
async def person(
    port: int, nick: str, *channels: str, account: tuple[str, str] | None = None, caps: str = ""
) -> AsyncIterator[Person]:
    """Connected and in ``channels``; with ``account`` (name, password) logged in by SASL."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    made = Person(nick, reader, writer)
    try:
        if account or caps:
            made.send(f"CAP REQ :{' '.join([*(['sasl'] if account else []), *caps.split()])}")
        made.send(f"NICK {nick}")
        made.send(f"USER {nick} 0 * :{nick}")
        if account:
            await made.expect("CAP .* ACK")
            made.send("AUTHENTICATE PLAIN")
            await made.expect("AUTHENTICATE :?\\+")
            made.send("AUTHENTICATE " + base64.b64encode("\0{}\0{}".format(*account).encode()).decode())
            await made.expect(" 903 ")
        if account or caps:
            made.send("CAP END")
        await made.expect(r"\s(376|422)\s")
        for channel in channels:
            made.send(f"JOIN {channel}")
            await made.expect(rf" 366 \S+ {re.escape(channel)} ")
        yield made
    finally:
        await made.close()
