"""HTTP/1.1 connections, with the strictness and the deadlines that uvicorn lacks, and errors in our envelope."""

from __future__ import annotations

import asyncio
import http
import re
import secrets
import sys
from typing import Any

import h11
import msgspec
from h11._receivebuffer import ReceiveBuffer
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from gateway.api.http.errors import RequestTimeoutError, envelope, headers_of
from gateway.base.errors import HearthError, InvalidRequestError, OverloadedError
from gateway.config.settings import ServerSettings

_LINGER_SECONDS = 0.5
_HEAD_PIECE_BYTES = 4096

# A line feed without a carriage return, or a folded line (obs-fold).
_LOOSE_LINE = re.compile(rb"(?<!\r)\n|\n[ \t]")


class StrictBuffer(ReceiveBuffer):
    """h11's buffer, but a line must end in CR LF.

    A proxy could parse other line ends differently, and so see other requests (RFC 9112, sections 2.2, 5.2 and 7.1.1).
    """

    def maybe_extract_lines(self) -> list[bytearray] | None:
        """Extract a head, or the trailers of a body."""
        if self._data[:2] == b"\r\n":
            return super().maybe_extract_lines()  # no trailers; another request may follow
        end = self._data.find(b"\r\n\r\n")
        if loose := _LOOSE_LINE.search(self._data, 0, end + 2 if end >= 0 else len(self._data)):
            what = "a folded line" if loose[0] != b"\n" else "a line that does not end in CR LF"
            raise h11.LocalProtocolError(what)
        return super().maybe_extract_lines()

    def maybe_extract_next_line(self) -> bytearray | None:
        """Extract the line before a chunk."""
        line = super().maybe_extract_next_line()
        if line is not None and b"\r" in line[:-2]:
            raise h11.LocalProtocolError("a carriage return before the end of a line")
        return line


class StrictConnection(h11.Connection):
    """Rejects requests whose length a proxy could parse differently (request smuggling)."""

    def __init__(self, max_head_bytes: int) -> None:
        super().__init__(h11.SERVER, max_head_bytes)
        self._receive_buffer = StrictBuffer()

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """Raises h11.RemoteProtocolError for a body of ambiguous length (RFC 9112, section 6.1)."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name for name, _ in event.headers}
            if b"transfer-encoding" in names and b"content-length" in names:
                raise h11.RemoteProtocolError("Content-Length beside Transfer-Encoding")
            if b"transfer-encoding" in names and event.http_version < b"1.1":
                raise h11.RemoteProtocolError("Transfer-Encoding in HTTP/1.0")
        return event


class GuardedProtocol(H11Protocol):
    """A connection with a deadline for the head of each request.

    uvicorn waits forever for the rest of a head. This deadline runs from the connection, or from the first byte of a
    later request, to the end of the head; between requests, uvicorn's keep-alive limit applies.
    """

    def __init__(
        self,
        limits: ServerSettings,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        assert config.h11_max_incomplete_event_size is not None
        self.conn = StrictConnection(config.h11_max_incomplete_event_size)
        self._limits = limits
        self._head_deadline: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._limits.max_connections:
            self._refuse(OverloadedError("too many connections; try again shortly", retry_after=1))
            return
        self._arm()

    def connection_lost(self, exc: Exception | None) -> None:
        self._disarm()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # In pieces while a head arrives: h11 checks its limit only between calls.
        while self.conn.their_state is h11.IDLE and len(data) > _HEAD_PIECE_BYTES and self._is_open():
            super().data_received(data[:_HEAD_PIECE_BYTES])
            data = data[_HEAD_PIECE_BYTES:]
        if not self._is_open():
            return
        super().data_received(data)
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._arm()
        else:
            self._disarm()

    def _is_open(self) -> bool:
        return not self._refused and not self.transport.is_closing()

    def on_response_complete(self) -> None:
        self._disarm()
        super().on_response_complete()

    def _arm(self) -> None:
        if self._head_deadline is None:
            self._head_deadline = self.loop.call_later(
                self._limits.header_timeout_seconds, self._head_overdue
            )

    def _disarm(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _head_overdue(self) -> None:
        self._head_deadline = None
        if self.transport.is_closing():
            return
        if self.conn.trailing_data[0]:
            self._refuse(
                RequestTimeoutError(
                    f"the request's head did not arrive within {self._limits.header_timeout_seconds:g} seconds"
                )
            )
        else:
            self.transport.close()  # no request, no reply

    def send_400_response(self, msg: str) -> None:
        error = sys.exc_info()[1]  # uvicorn calls this while it handles h11's exception
        # h11's other hint, 501 for any transfer coding except chunked, is wrong if chunked is not the last one.
        if isinstance(error, h11.RemoteProtocolError) and error.error_status_hint == 431:
            self._refuse(
                InvalidRequestError("the request's head is too large", code="header_too_large", status=431)
            )
        else:
            self._refuse(InvalidRequestError(f"invalid HTTP request: {error}", code="invalid_http"))

    def _refuse(self, error: HearthError) -> None:
        """Send an error, in place of a reply that has not begun, and close."""
        self._disarm()
        if self.cycle is not None and not self.cycle.response_complete:
            if self.cycle.response_started:
                self.transport.close()  # a reply has begun; nothing can be inserted
                return
            # The handler may be waiting for the rest of the body: signal that the client has disconnected.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self._refused = True
        self.connections.discard(self)
        self.transport.write(_raw_reply(error))
        # Closing with unread data would reset the connection before the reply arrives, so linger.
        self.transport.write_eof()
        self.loop.call_later(_LINGER_SECONDS, self.transport.close)


def _raw_reply(error: HearthError) -> bytes:
    request_id = secrets.token_hex(6)
    body = msgspec.json.encode(envelope(error, request_id))
    headers = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "connection": "close",
        "x-request-id": request_id,
        **headers_of(error),
    }
    phrase = http.HTTPStatus(error.status).phrase
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {error.status} {phrase}\r\n{head}\r\n".encode("ascii") + body
