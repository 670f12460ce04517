"""The route table as data: every endpoint declares who may call it and which bodies it takes."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, compile_path
from starlette.types import ASGIApp

from gateway.api.http.auth import Access

JSON = "application/json"
TEXT = "text/plain"
FORM = "application/x-www-form-urlencoded"
SSE = "text/event-stream"
NDJSON = "application/x-ndjson"

Handler = Callable[[Request], Awaitable[ASGIApp]]


@dataclass(frozen=True)
class Endpoint:
    """One method on one path. ``accepts`` lists the media types of a request body ("": none named).

    The rest describes it in the OpenAPI document: ``body`` and ``reply`` are the types of JSON (None: no JSON, or
    of no fixed shape), ``streams`` the media type of a streamed reply, ``status`` that of success, ``query`` the
    type of the query's parameters (None: none is read). The summary is the first sentence of the handler's docstring.
    Not ``described`` is what is no part of the API.
    """

    method: str
    path: str
    handler: Handler
    access: Access
    accepts: tuple[str, ...] = ()
    body: Any = None
    reply: Any = None
    streams: str = ""
    status: int = 200
    query: type[Struct] | None = None
    described: bool = True

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """What ``scope["path"]`` must match; the same expression that Starlette routes by."""
        return compile_path(self.path)[0]

    def route(self) -> Route:
        """The Starlette route."""
        return Route(self.path, self.handler, methods=[self.method])


def json_reply(value: object, status: int = 200) -> Response:
    """``value`` as JSON: a struct, or what consists of such."""
    return Response(msgspec.json.encode(value), status, media_type=JSON)


def find(endpoints: Sequence[Endpoint], method: str, path: str) -> Endpoint | None:
    """The endpoint that serves ``path``, by preference the one with this method (HEAD counts as GET)."""
    method = "GET" if method == "HEAD" else method
    matching = [endpoint for endpoint in endpoints if endpoint.pattern.match(path)]
    return next((endpoint for endpoint in matching if endpoint.method == method), None) or next(
        iter(matching), None
    )
