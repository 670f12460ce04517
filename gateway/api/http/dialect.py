"""How errors look to each family of clients. The path decides, so that a wrong path or method is told in it too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.api.http.errors import envelope
from gateway.base.errors import HearthError


@dataclass(frozen=True)
class Dialect:
    """``envelope`` makes an error's body from it and the request's id; ``id_header`` is a second name for that id."""

    envelope: Callable[[HearthError, str], dict[str, Any]] = envelope
    id_header: str | None = None


def ollama_envelope(error: HearthError, request_id: str) -> dict[str, Any]:
    """``{"error": message}``, all that Ollama's clients read, with our code and id next to it."""
    return {"error": error.message, "code": error.code, "request_id": request_id}


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


def anthropic_envelope(error: HearthError, request_id: str) -> dict[str, Any]:
    """``{"type": "error", "error": {"type", "message"}, "request_id"}``."""
    kind = _ANTHROPIC_TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    if kind == "overloaded_error" and error.retry_after is None:
        kind = "api_error"  # it will not pass by waiting
    return {
        "type": "error",
        "error": {"type": kind, "message": error.message},
        "request_id": request_id,
    }


OPENAI = Dialect()
OLLAMA = Dialect(ollama_envelope)
ANTHROPIC = Dialect(anthropic_envelope, id_header="request-id")

_BY_PREFIX = {"/api/": OLLAMA, "/v1/messages": ANTHROPIC}


def dialect_of(path: str) -> Dialect:
    """The dialect of whoever calls ``path``; OpenAI's for all that is nobody else's."""
    return next((dialect for prefix, dialect in _BY_PREFIX.items() if path.startswith(prefix)), OPENAI)
