"""GET / and /assets/{name}: the files of the web page, which gets its data from the API."""

from __future__ import annotations

import hashlib
from functools import cache

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.http.endpoint import Endpoint
from gateway.base.errors import NotFoundError
from gateway.base.resources import web_page

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# Resources and connections of this origin only, no inline code, and no text that becomes markup (trusted types).
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # Revalidate each time, so that all files of a page have the same version.
    "Cache-Control": "no-cache",
}


async def page(request: Request) -> Response:
    return _served(request, "index.html")


async def asset(request: Request) -> Response:
    return _served(request, request.path_params["name"])


def _served(request: Request, name: str) -> Response:
    """The file, or 304 if the client has it. Raises NotFoundError."""
    if name not in _files():
        raise NotFoundError(f"the page has no file `{name[:100]}`")
    content, media_type, tag = _files()[name]
    headers = {**_HEADERS, "ETag": tag}
    # A proxy may have made the tag a weak one (RFC 9110, 13.1.2).
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if tag in known or known == ["*"]:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=media_type)


@cache
def _files() -> dict[str, tuple[bytes, str, str]]:
    """Content, media type and entity tag by name, read once: a name from a request never becomes a path."""
    found = {}
    for path in sorted(web_page().iterdir()):
        if path.suffix in _MEDIA_TYPES:
            content = path.read_bytes()
            tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
            found[path.name] = content, _MEDIA_TYPES[path.suffix], tag
    return found


ENDPOINTS = (
    Endpoint("GET", "/", page, described=False, access="public"),
    Endpoint("GET", "/assets/{name}", asset, described=False, access="public"),
)
