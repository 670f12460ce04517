"""The model is started by the first sign that it will be needed: somebody types, or a request begins to arrive."""

from __future__ import annotations

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.http.endpoint import Endpoint, json_reply
from gateway.api.services import services_of, services_of_scope
from gateway.inference.interface import HostState


class TypingReply(Struct, frozen=True):
    """What the model host was doing when the signal came; one that was not ``ready`` is being started."""

    state: HostState


async def typing(request: Request) -> Response:
    """Say that a user has begun to write: a model that was let go is loaded meanwhile. Returns at once."""
    services = services_of(request)
    state = services.inference.health().state
    services.waker.wake()
    return json_reply(TypingReply(state), 202)


ENDPOINTS = (Endpoint("POST", "/v1/typing", typing, "user", reply=TypingReply, status=202),)


class EarlyWake:
    """Wakes the model when the first part of a body has come and the rest is still on its way.

    Only for endpoints that generate, and behind the guard. A body that comes whole is looked at first: one that is
    refused should wake nobody.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _generates(scope):
            await self._app(scope, receive, send)
            return

        async def watched() -> Message:
            message = await receive()
            if message["type"] == "http.request" and message.get("more_body", False) and message.get("body"):
                services_of_scope(scope).waker.wake()
            return message

        await self._app(scope, watched, send)


def _generates(scope: Scope) -> bool:
    endpoint: Endpoint | None = scope["state"]["endpoint"]
    return endpoint is not None and endpoint.method == scope["method"] == "POST" and bool(endpoint.streams)
