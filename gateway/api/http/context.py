"""The middleware for request ids, error replies, the access log and request metrics."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from typing import Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.http.endpoint import Endpoint, find
from gateway.api.http.errors import Dialect, client_gone, dialect_of, error_response, internal_error
from gateway.api.parsing.fields import ignored_hints
from gateway.base.errors import HearthError
from gateway.telemetry.metrics import Metrics

log = structlog.get_logger("gateway.access")

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


def request_id_from(headers: Headers) -> str:
    """The caller's ``X-Request-ID`` if it is valid, otherwise a new one."""
    given = headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(6)


class RequestContext:
    """Gives each request an id, logs it, and turns exceptions into replies."""

    def __init__(self, app: ASGIApp, *, endpoints: Sequence[Endpoint], metrics: Metrics) -> None:
        self._app = app
        self._endpoints = endpoints
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_from(Headers(scope=scope))
        endpoint = find(self._endpoints, scope["method"], scope["path"])
        dialect = dialect_of(scope["path"])
        scope.setdefault("state", {}).update(
            request_id=request_id, endpoint=endpoint, dialect=dialect, origin=None
        )
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        ignored_hints.set([])
        reply, started = _Reply(send, scope["state"]), time.monotonic()
        try:
            await self._run(scope, receive, reply)
        finally:
            seconds = time.monotonic() - started
            route = endpoint.path if endpoint else "unknown"
            self._metrics.request_done(route, scope["method"], reply.status, seconds)
            log.info(
                "request",
                method=scope["method"],
                path=scope["path"],
                status=reply.status,
                seconds=round(seconds, 4),
                client=scope["client"][0] if scope.get("client") else None,
                caller=scope["state"].get("caller_name"),
            )

    async def _run(self, scope: Scope, receive: Receive, reply: _Reply) -> None:
        """Run the application. Exceptions become replies, unless a reply has started."""
        try:
            await self._app(scope, receive, reply.send)
            return
        except ClientDisconnect:
            error = client_gone()
        except HearthError as known:
            error = known
            if reply.status is not None:
                log.error("reply broken off", code=error.code, message=error.message)
                raise
        except Exception:
            log.exception("unexpected error", path=scope["path"])
            if reply.status is not None:
                raise  # the server closes the connection, so that the reply does not look complete
            error = internal_error()
        if reply.status is None:
            response = error_response(error, reply.request_id, reply.dialect)
            await response(scope, receive, reply.send)


class _Reply:
    """Adds the request id, the ignored hints and the CORS headers to a reply, and notes its status."""

    def __init__(self, send: Send, state: dict[str, Any]) -> None:
        self._send = send
        self._state = state
        self.request_id: str = state["request_id"]
        self.dialect: Dialect = state["dialect"]
        self.status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self.request_id
            if self.dialect.id_header is not None:
                headers[self.dialect.id_header] = self.request_id
            if ignored := ignored_hints.get():
                headers["x-hearth-ignored"] = ", ".join(ignored)
            if self._state["origin"] is not None:  # one of settings.allowed_origins, set by the guard
                headers["Access-Control-Allow-Origin"] = self._state["origin"]
                headers["Access-Control-Expose-Headers"] = (
                    "X-Request-ID, Request-ID, Retry-After, X-Hearth-Ignored"
                )
                headers.add_vary_header("Origin")
        await self._send(message)
