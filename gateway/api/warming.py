"""Early model starts: when a user types, or when a long request starts to arrive."""

from __future__ import annotations

from msgspec import Struct
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.http.endpoint import Endpoint
from gateway.api.services import ApiRequest, services_of_scope
from gateway.inference.interface import HostState


class TypingReply(Struct, frozen=True):
    """The state of the model host when the request came. If it was not ``ready``, it is starting now."""

    state: HostState


async def typing(request: ApiRequest) -> TypingReply:
    """Signal that a user is typing: an unloaded model starts to load. Returns immediately."""
    services = request.services
    state = services.inference.health().state
    services.waker.wake()
    return TypingReply(state)


ENDPOINTS = (Endpoint("POST", "/v1/typing", typing, "user", reply=TypingReply, status=202),)


class EarlyWake:
    """Wakes the model when the first part of a body has arrived but not the rest.

    Only for endpoints that generate, and behind the guard. A body that arrives at once is parsed first: an invalid
    request should not wake the model.
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
