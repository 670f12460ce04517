"""Errors as HTTP replies, in OpenAI's envelope; other envelopes are in ``gateway.api.http.dialect``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from gateway.base.errors import CLIENT_GONE, HearthError, NotFoundError

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ClientGoneError(HearthError):
    """The client closed the connection before the reply was complete."""

    status = CLIENT_GONE
    code = "client_gone"


class MethodNotAllowedError(HearthError):
    """The path exists, the method does not."""

    status = 405
    code = "method_not_allowed"


class RequestTimeoutError(HearthError):
    """The client took too long to send its request."""

    status = 408
    code = "request_timeout"


class MisdirectedError(HearthError):
    """The Host header names a server that this one is not."""

    status = 421
    code = "unknown_host"


class UnsupportedMediaError(HearthError):
    """The body's content type is not one that the endpoint takes."""

    status = 415
    code = "unsupported_media_type"


def internal_error() -> HearthError:
    """What a caller sees of an unexpected exception: nothing but the id under which it was logged."""
    return HearthError("an internal error occurred; the log has the details under this request id")


def envelope(error: HearthError, request_id: str) -> dict[str, Any]:
    """``{"error": {"message", "type", "param", "code", "request_id", "retry_after"?, "details"?}}``.

    ``retry_after`` (seconds) is for streams, which have no headers any more.
    """
    kind = _TYPES.get(error.status) or ("invalid_request_error" if error.status < 500 else "server_error")
    body: dict[str, Any] = {
        "message": error.message,
        "type": kind,
        "param": error.param,
        "code": error.code,
        "request_id": request_id,
    }
    if error.retry_after is not None:
        body["retry_after"] = _whole_seconds(error.retry_after)
    if error.details:
        body["details"] = error.details
    return {"error": body}


def headers_of(error: HearthError) -> dict[str, str]:
    """Retry advice: ``Retry-After`` when later can help, ``x-should-retry: false`` on permanent 5xx."""
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(_whole_seconds(error.retry_after))
    elif error.status >= 500:
        headers["x-should-retry"] = "false"
    if error.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return headers


def _whole_seconds(wait: float) -> int:
    return max(1, math.ceil(wait))


def error_response(
    error: HearthError, request_id: str, enclose: Callable[[HearthError, str], dict[str, Any]]
) -> Response:
    """The reply for an error that arose before anything was sent; ``enclose`` makes its body."""
    body = msgspec.json.encode(enclose(error, request_id))
    return Response(body, error.status, headers_of(error), media_type="application/json")


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Starlette's own 404 and 405, in the client's envelope."""
    assert isinstance(error, HTTPException)
    path, method = request.scope["path"], request.scope["method"]
    known: HearthError
    if error.status_code == 404:
        known = NotFoundError(f"there is nothing at {path}")
    elif error.status_code == 405:
        known = MethodNotAllowedError(f"{path} does not take {method}")
    else:
        known = HearthError(error.detail, status=error.status_code, code="http_error")
    response = error_response(known, request.state.request_id, request.state.dialect.envelope)
    response.headers.update(error.headers or {})
    return response
