"""Checks before a body is read: host, origin, key, content type."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import structlog
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.api.http.auth import address_of
from gateway.api.http.endpoint import JSON, Endpoint
from gateway.api.services import services_of_scope
from gateway.base.errors import ForbiddenError, HearthError
from gateway.config.settings import ServerSettings

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\s:@/\\\[\]]+))(?::\d{1,5})?")
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_DEFAULT_PORTS = {"http": 80, "https": 443}


class Guard:
    """Decides by ``scope["path"]``, never by the URL: that contains the Host header."""

    def __init__(self, app: ASGIApp, *, settings: ServerSettings) -> None:
        self._app = app
        self._hosts = {"localhost", "127.0.0.1", "::1", settings.host.lower()}
        self._hosts.update(name.lower().strip("[]") for name in settings.allowed_hosts)
        self._origins = {origin.lower().rstrip("/") for origin in settings.allowed_origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        self._check_host(scope, headers)
        origin = headers.get("origin", "").lower()
        if origin in self._origins:
            scope["state"]["origin"] = origin
        if scope["method"] == "OPTIONS" and origin and "access-control-request-method" in headers:
            await self._preflight(origin)(scope, receive, send)
            return
        if scope["method"] not in _SAFE_METHODS:
            self._check_origin(headers, origin)
        await _authenticate(scope, headers)
        endpoint: Endpoint | None = scope["state"]["endpoint"]
        if endpoint is not None and scope["method"] == endpoint.method:
            check_content_type(endpoint, headers)
        await self._app(scope, receive, send)

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        """Against DNS rebinding: a page whose name was rebound to this address sends its own name."""
        host = headers.get("host", "")
        name = _host_name(host)
        # An address cannot be rebound.
        local = (scope.get("server") or ("",))[0]
        if name in self._hosts or (name == local and address_of(local) is not None):
            return
        raise HearthError(
            f"the host {host[:100]!r} is not served here; add it to server.allowed_hosts",
            status=421,
            code="unknown_host",
        )

    def _check_origin(self, headers: Headers, origin: str) -> None:
        """Only programs, our own pages and configured origins may change state."""
        if origin:
            if origin in self._origins or _same_origin(origin, headers.get("host", "")):
                return
            raise _foreign_origin()
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise _foreign_origin()

    def _preflight(self, origin: str) -> Response:
        if origin not in self._origins:
            raise _foreign_origin()
        return Response(
            status_code=204,
            headers={
                "Access-Control-Allow-Methods": "GET, POST, PATCH, DELETE",
                # The vendors' clients send many headers. The wildcard does not include Authorization.
                "Access-Control-Allow-Headers": "Authorization, *",
                "Access-Control-Max-Age": "600",
            },
        )


def _foreign_origin() -> ForbiddenError:
    return ForbiddenError(
        "pages of this origin may not call the API; add it to server.allowed_origins", code="foreign_origin"
    )


async def _authenticate(scope: Scope, headers: Headers) -> None:
    endpoint: Endpoint | None = scope["state"]["endpoint"]
    # Unknown paths look like known ones to callers without a key.
    access = endpoint.access if endpoint is not None else "user"
    caller = await services_of_scope(scope).auth.authenticate(headers, access)
    scope["state"].update(caller=caller, caller_name=caller.owner)
    structlog.contextvars.bind_contextvars(caller=caller.owner)


def check_content_type(endpoint: Endpoint, headers: Headers) -> None:
    """Raises HearthError (415) for a body of a type that the endpoint does not accept.

    Browsers send plain text and forms to other sites without a preflight request, so a JSON endpoint accepts neither.
    """
    given = headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
    if not has_body or given in (endpoint.accepts or (JSON,)):
        return
    wanted = " or ".join(kind for kind in endpoint.accepts if kind) or "no body"
    hint = f"; send it with Content-Type: {JSON} (curl: --json)" if JSON in endpoint.accepts else ""
    raise HearthError(
        f"{endpoint.path} accepts {wanted}, not {given or 'a body without a type'}{hint}",
        status=415,
        code="unsupported_media_type",
        param="Content-Type",
    )


def _host_name(host: str) -> str:
    """The lower-case name in a Host header, without port and brackets; "" if malformed."""
    match = _HOST.fullmatch(host)
    return (match[1] or match[2]).lower() if match else ""


def _same_origin(origin: str, host: str) -> bool:
    """Whether a page of ``origin`` was served under this Host. The scheme may differ behind a TLS proxy."""
    try:
        page, here = urlsplit(origin), urlsplit(f"//{host}")
        default = _DEFAULT_PORTS.get(page.scheme)
        return default is not None and (page.hostname, page.port or default) == (
            here.hostname,
            here.port or default,
        )
    except ValueError:
        return False
