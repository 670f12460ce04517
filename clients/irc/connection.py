"""The connection below pydle's client, with the interface of pydle's own.

pydle's waits with ``asyncio.wait_for``, which in Python 3.11 may swallow a cancellation, and it closes without waiting
for the end.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl

_CONNECT_SECONDS = 20.0
_SEND_SECONDS = 30.0
_CLOSE_SECONDS = 2.0


class Connection:
    """A TCP or TLS connection, a line at a time. ``hostname`` and ``throttle`` are there for pydle."""

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None) -> None:
        self.hostname = host
        self.throttle = True
        self._port = port
        self._tls = tls
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    @property
    def connected(self) -> bool:
        """Whether it was made and not closed by us."""
        return self._writer is not None

    async def connect(self) -> None:
        """Raises OSError and TimeoutError."""
        async with asyncio.timeout(_CONNECT_SECONDS):
            self._reader, self._writer = await asyncio.open_connection(
                self.hostname, self._port, ssl=self._tls
            )

    async def send(self, data: bytes) -> None:
        """Raises OSError (ConnectionError when it is closed) and TimeoutError."""
        if self._writer is None:
            raise ConnectionResetError("not connected")
        self._writer.write(data)
        async with asyncio.timeout(_SEND_SECONDS):
            await self._writer.drain()

    async def line(self, seconds: float) -> bytes:
        """The next line; empty at the end. Raises TimeoutError, and ValueError for a line without end."""
        if self._reader is None:
            return b""
        try:
            async with asyncio.timeout(seconds):
                return await self._reader.readline()
        except ConnectionError:
            return b""

    async def disconnect(self) -> None:
        """Close, and wait until it is closed."""
        writer, self._reader, self._writer = self._writer, None, None
        if writer is None:
            return
        writer.close()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
        except TimeoutError:
            writer.transport.abort()
