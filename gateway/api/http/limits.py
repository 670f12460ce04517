"""Limits on the size and duration of request bodies, and on concurrent requests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.http.errors import RequestTimeoutError
from gateway.base.errors import OverloadedError, TooLargeError
from gateway.base.peers import Peers
from gateway.config.settings import ServerSettings

# How much of a refused body is read and discarded, so that the client can read the error.
_DISCARD_BYTES = 1024 * 1024
_DISCARD_SECONDS = 0.5
_BUSY_RETRY_SECONDS = 5.0


class ConcurrencyLimit:
    """Refuses requests beyond ``limit`` over all gateways; does not queue them."""

    def __init__(self, peers: Peers, limit: int, what: str) -> None:
        self._peers = peers
        self._limit = limit
        self._what = what

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Raises OverloadedError at the limit."""
        async with self._peers.place(self._what, self._limit) as free:
            if not free:
                raise OverloadedError(
                    f"{self._limit} {self._what} are already being answered; try again shortly",
                    retry_after=_BUSY_RETRY_SECONDS,
                )
            yield


class BodyLimit:
    """Refuses bodies that exceed the size limit, declared or streamed, or that take too long to arrive.

    As the outermost middleware it sees every reply. A reply before the end of the body closes the connection, because
    the rest of the body follows on it. ``receive`` raises the errors; RequestContext turns them into replies.
    """

    def __init__(self, app: ASGIApp, *, settings: ServerSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        body = _Body(Headers(scope=scope), receive, send, self._settings)
        await self._app(scope, body.receive, body.send)


class _Body:
    """A body as it arrives, and the reply that may overtake it."""

    def __init__(self, headers: Headers, receive: Receive, send: Send, settings: ServerSettings) -> None:
        self._receive, self._send = receive, send
        self._declared = headers.get("content-length", "0")
        self._complete = self._declared == "0" and "transfer-encoding" not in headers
        self._may_discard = "expect" not in headers
        self._limit = settings.max_body_bytes
        self._seconds = settings.body_timeout_seconds
        self._deadline: float | None = None
        self._size = 0
        self._closing = False

    async def receive(self) -> Message:
        """The next message. Raises TooLargeError and RequestTimeoutError."""
        if self._complete:
            return await self._receive()
        if self._declared.isdecimal() and int(self._declared) > self._limit:
            raise self._too_large()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._next()
        except TimeoutError:
            raise RequestTimeoutError(
                f"the request body did not arrive within {self._seconds:g} seconds"
            ) from None
        if self._size > self._limit:
            raise self._too_large()
        return message

    async def _next(self) -> Message:
        message = await self._receive()
        self._size += len(message.get("body", b""))
        self._complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    def _too_large(self) -> TooLargeError:
        return TooLargeError(f"the request body is over the limit of {self._limit} bytes")

    async def send(self, message: Message) -> None:
        """Forward a reply. Close the connection after it if the body has not arrived completely."""
        if message["type"] == "http.response.start" and not self._complete:
            self._closing = True
            MutableHeaders(scope=message)["Connection"] = "close"
        if self._closing and message["type"] == "http.response.body" and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._discard()
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    async def _discard(self) -> None:
        """Read a little more: closing with unread data would reset the connection before the client reads the reply."""
        if not self._may_discard:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_DISCARD_SECONDS):
                while not self._complete and self._size <= self._limit + _DISCARD_BYTES:
                    await self._next()
