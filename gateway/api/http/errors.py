"""Errors as HTTP replies in the envelope of the client's dialect."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from gateway.base.errors import CLIENT_GONE, HearthError, NotFoundError

_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_ANTHROPIC_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
# Of JSON-RPC.
_PARSE_ERROR, OWN_ERROR = -32700, -32000


class RequestTimeoutError(HearthError, status=408, code="request_timeout"):
    """The client took too long to send its request."""


def client_gone() -> HearthError:
    return HearthError("the client closed the connection", status=CLIENT_GONE, code="client_gone")


def internal_error() -> HearthError:
    """Stands for an unexpected exception, whose details are for the log only."""
    return HearthError("an internal error occurred; the log has the details under this request id")


def envelope(error: HearthError, request_id: str) -> dict[str, Any]:
    """OpenAI's ``{"error": {"message", "type", "param", "code"}}`` with the request id.

    It repeats ``Retry-After`` as ``retry_after`` (seconds), because streams have already sent their headers.
    """
    kind = _OPENAI_TYPES.get(error.status)
    body: dict[str, Any] = {
        "message": error.message,
        "type": kind or ("invalid_request_error" if error.status < 500 else "server_error"),
        "param": error.param,
        "code": error.code,
        "request_id": request_id,
    }
    if error.retry_after is not None:
        body["retry_after"] = _whole_seconds(error.retry_after)
    if error.details:
        body["details"] = error.details
    return {"error": body}


def ollama_envelope(error: HearthError, request_id: str) -> dict[str, Any]:
    """Ollama's ``{"error": message}`` with our code and request id."""
    return {"error": error.message, "code": error.code, "request_id": request_id}


def anthropic_envelope(error: HearthError, request_id: str) -> dict[str, Any]:
    """``{"type": "error", "error": {"type", "message"}, "request_id"}``."""
    kind = _ANTHROPIC_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    if kind == "overloaded_error" and error.retry_after is None:
        kind = "api_error"  # clients retry an overloaded_error
    return {"type": "error", "error": {"type": kind, "message": error.message}, "request_id": request_id}


def mcp_envelope(error: HearthError, request_id: str) -> dict[str, Any]:
    """A JSON-RPC error."""
    number = _PARSE_ERROR if error.code in ("invalid_json", "too_deep") else OWN_ERROR
    data = {"code": error.code, "request_id": request_id}
    return {"jsonrpc": "2.0", "id": None, "error": {"code": number, "message": error.message, "data": data}}


@dataclass(frozen=True)
class Dialect:
    """``envelope`` makes the body of an error; ``id_header`` is another header for the request id."""

    envelope: Callable[[HearthError, str], dict[str, Any]] = envelope
    id_header: str | None = None


OPENAI = Dialect()
OLLAMA = Dialect(ollama_envelope)
ANTHROPIC = Dialect(anthropic_envelope, id_header="request-id")
MCP = Dialect(mcp_envelope)


def dialect_of(path: str) -> Dialect:
    """The dialect of a path, known or unknown; OpenAI's is the default."""
    if path.startswith("/api/"):
        return OLLAMA
    if path == "/mcp":
        return MCP
    return ANTHROPIC if path.startswith("/v1/messages") else OPENAI


def headers_of(error: HearthError) -> dict[str, str]:
    """``Retry-After`` if a retry can help, ``x-should-retry: false`` on permanent 5xx."""
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


def error_response(error: HearthError, request_id: str, dialect: Dialect) -> Response:
    body = msgspec.json.encode(dialect.envelope(error, request_id))
    return Response(body, error.status, headers_of(error), media_type="application/json")


async def on_http_exception(request: Request, error: Exception) -> Response:
    """Starlette's own 404 and 405, in the client's envelope."""
    assert isinstance(error, HTTPException)
    path, method = request.scope["path"], request.scope["method"]
    known: HearthError
    if error.status_code == 404:
        known = NotFoundError(f"there is nothing at {path}{_meant(request, path)}")
    elif error.status_code == 405:
        known = HearthError(f"{path} does not accept {method}", status=405, code="method_not_allowed")
    else:
        known = HearthError(error.detail, status=error.status_code, code="http_error")
    response = error_response(known, request.state.request_id, request.state.dialect)
    response.headers.update(error.headers or {})
    return response


def _meant(request: Request, path: str) -> str:
    """The remedy for a client whose base address lacks `/v1`, or has it although the client adds it."""
    served = path.removeprefix("/v1") if path.startswith("/v1/v1/") else f"/v1{path}"
    scope = {**request.scope, "path": served}
    if all(route.matches(scope)[0] is not Match.FULL for route in request.app.routes):
        return ""
    return f", but at {served}: the client's base address {'ends in' if len(served) > len(path) else 'has no'} /v1"
