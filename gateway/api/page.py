"""GET / and /assets/{name}: the web page. It holds no data; what it shows, it fetches through the API."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from gateway.api.http.endpoint import Endpoint
from gateway.base.errors import NotFoundError
from gateway.base.resources import web_page

INDEX = "index.html"

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing from elsewhere, no inline code, nowhere to send anything but here. Trusted types: no text becomes markup.
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
    # Kept, and asked about each time: all files of one page are of one version.
    "Cache-Control": "no-cache",
}


class _File(Struct, frozen=True):
    """A file of the page; ``tag`` is an entity tag of its content."""

    content: bytes
    media_type: str
    tag: str


async def page(request: Request) -> Response:
    """The web page."""
    return _served(request, INDEX)


async def asset(request: Request) -> Response:
    """A file of the web page."""
    return _served(request, request.path_params["name"])


def _served(request: Request, name: str) -> Response:
    """The file, or 304 when the client has it. Raises NotFoundError for a name that is none of the page's files."""
    file = _files().get(name)
    if file is None:
        raise NotFoundError(f"the page has no file `{name[:100]}`")
    headers = {**_HEADERS, "ETag": file.tag}
    if _has(request.headers.get("if-none-match", ""), file.tag):
        return Response(status_code=304, headers=headers)
    return Response(file.content, headers=headers, media_type=file.media_type)


def _has(known: str, tag: str) -> bool:
    """Whether ``If-None-Match`` names the tag; a proxy may have made it a weak one (RFC 9110, 13.1.2)."""
    return known.strip() == "*" or tag in (each.strip().removeprefix("W/") for each in known.split(","))


@cache
def _files() -> Mapping[str, _File]:
    """All files by name, read once: a name from a request never becomes a path."""
    found = {}
    for path in sorted(web_page().iterdir()):
        if path.suffix in _MEDIA_TYPES:
            content = path.read_bytes()
            tag = f'"{hashlib.blake2b(content, digest_size=12).hexdigest()}"'
            found[path.name] = _File(content, _MEDIA_TYPES[path.suffix], tag)
    return found


# The OpenAPI document describes the API; these are for browsers.
ENDPOINTS = (
    Endpoint("GET", "/", page, "public", described=False),
    Endpoint("GET", "/assets/{name}", asset, "public", described=False),
)
