"""The route table as data: each endpoint declares its access, its bodies and its replies."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, compile_path
from starlette.types import ASGIApp, Message, Receive

from gateway.api.http.auth import Access
from gateway.api.parsing.fields import parse
from gateway.api.parsing.paging import query_of
from gateway.api.services import ApiRequest, services_of_scope
from gateway.base.errors import InvalidRequestError

JSON = "application/json"
TEXT = "text/plain"
FORM = "application/x-www-form-urlencoded"
SSE = "text/event-stream"
# JSON whose type the client may leave out. A browser can send such a body to other sites without a preflight request,
# but not without the Origin header, by which the guard refuses it.
MAYBE_JSON = (JSON, "")
NDJSON = "application/x-ndjson"
_NOTHING = (b"", b"{}", b"null")  # what clients send where a route has no fields

# A handler gets the request and what it declares, the body or the query. It returns an ASGI reply, or a value that is
# sent as JSON with the endpoint's status.
Handler = Callable[..., Awaitable[object]]


@dataclass(frozen=True)
class Endpoint:
    """One method on one path. ``body`` and ``query`` are the types of what its handler gets; ``reply`` of its JSON.

    ``media`` lists the media types of a body if it may be another one than JSON ("": none named). If it may be text,
    the handler reads it. An ``optional`` body may be missing. The OpenAPI document shows these types, the media type of
    a stream (``streams``), the status of success, and the first paragraph of the handler's docstring.
    ``described=False`` hides the endpoint.
    """

    method: str
    path: str
    handler: Handler
    body: Any = None
    reply: Any = None
    streams: str = ""
    access: Access = "user"
    media: tuple[str, ...] = ()
    optional: bool = False
    status: int = 200
    query: type[Struct] | None = None
    described: bool = True

    @property
    def accepts(self) -> tuple[str, ...]:
        """The media types of a body; none if there must be none."""
        return self.media or ((JSON,) if self.body is not None else ())

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The expression that Starlette matches ``scope["path"]`` with."""
        return compile_path(self.path)[0]

    def route(self) -> Route:
        return Route(self.path, self._serve, methods=[self.method])

    async def _serve(self, request: Request) -> ASGIApp:
        receive = _waking(request) if self.streams and self.method == "POST" else request.receive
        received = ApiRequest(request.scope, receive)
        given: list[object] = []
        if not self.accepts and (body := await request.body()).strip() not in _NOTHING:
            raise InvalidRequestError(f"{self.method} {self.path} has no fields, but {len(body)} bytes came")
        if self.query is not None:
            given.append(query_of(received, self.query))
        elif self.body is not None and TEXT not in self.accepts:
            body = await received.body()
            given.append(parse(b"{}" if self.optional and not body.strip() else body, self.body))
        reply = await self.handler(received, *given)
        if isinstance(reply, Struct | dict | list):
            return Response(msgspec.json.encode(reply), self.status, media_type=JSON)
        return cast("ASGIApp", reply)


def _waking(request: Request) -> Receive:
    """Wake the model when the first part of a body has arrived but not the rest.

    A body that arrives at once is parsed first: an invalid request should not wake the model.
    """

    async def receive() -> Message:
        message = await request.receive()
        if message["type"] == "http.request" and message.get("more_body", False) and message.get("body"):
            services_of_scope(request.scope).waker.wake()
        return message

    return receive


def find(endpoints: Sequence[Endpoint], method: str, path: str) -> Endpoint | None:
    """The endpoint that serves ``path``, preferably with this method; HEAD counts as GET."""
    method = "GET" if method == "HEAD" else method
    matching = [endpoint for endpoint in endpoints if endpoint.pattern.match(path)]
    return max(matching, key=lambda endpoint: endpoint.method == method, default=None)
