"""MCP over HTTP: each request is served by itself, and nothing is kept between requests.

Clients of the specification's versions before 2026-07-28 get a session id that is never checked and so never expires,
also not when the server restarts. It only tells their calls apart, because they cancel a call with a request of its own
(docs/decisions/0023-mcp.md).
"""

from __future__ import annotations

import asyncio
import secrets
from typing import Any

import msgspec
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from gateway.api.mcp.server import Context, failed, listed, make_server
from gateway.api.mcp.tool import OfferedTool
from gateway.api.mcp.tools import offered
from gateway.api.parsing.fields import decode_object
from gateway.api.services import ApiRequest
from gateway.api.streaming.streams import known_error
from gateway.base.aio import stop

_SESSION = "mcp-session-id"
# The guard has checked them already, by hearth's own settings.
_NO_CHECKS = TransportSecuritySettings(enable_dns_rebinding_protection=False)


class _Call(msgspec.Struct, frozen=True):
    """A running call that its client can cancel."""

    owner: str
    session: str
    id: int | str


_running: dict[_Call, asyncio.Task[Any]] = {}


class McpReply:
    """The reply to one request, whose ``body`` has been read. When it ends, its work is stopped."""

    def __init__(self, request: ApiRequest, body: bytes) -> None:
        self._request = request
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = decode_object(self._body)  # the package checks the rest
        method, params = message.get("method"), message.get("params")
        if method == "notifications/cancelled" and isinstance(params, dict):
            self._cancel(params.get("requestId"))
        manager = StreamableHTTPSessionManager(
            _SERVER,
            stateless=True,
            security_settings=_NO_CHECKS,
            max_request_body_size=self._request.services.settings.server.max_body_bytes,
        )
        unread = [self._body]

        async def received() -> Message:
            return {"type": "http.request", "body": unread.pop()} if unread else await receive()

        async def sent(part: Message) -> None:
            if part["type"] == "http.response.start" and method == "initialize":
                MutableHeaders(scope=part)[_SESSION] = secrets.token_hex(16)
            await send(part)

        async with manager.run():
            await manager.handle_request(scope, received, sent)

    def _cancel(self, id_: object) -> None:
        session = self._request.headers.get(_SESSION, "")
        if isinstance(id_, int | str) and (task := _running.get(_Call(self._request.owner, session, id_))):
            task.cancel()


async def _list(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "all tools are on one page: leave `cursor` out")
    return listed(_offered(_request(context)))


async def _call(context: Context, params: CallToolRequestParams) -> CallToolResult:
    request = _request(context)
    tool = next((tool for tool in _offered(request) if tool.name == params.name), None)
    if tool is None:
        off = any(each.name == params.name for each in offered(write=True))
        remedy = ": the tools that write are off, the server's setting mcp.write turns them on" if off else ""
        raise MCPError(INVALID_PARAMS, f"there is no tool `{params.name[:100]}`{remedy}")
    steps = 0

    async def progress(text: str) -> None:
        nonlocal steps
        steps += 1
        await context.session.report_progress(steps, None, text)

    async def work() -> Any:
        return await tool.call(request, params.arguments or {}, progress)

    task = asyncio.create_task(work())
    call = _Call(request.owner, request.headers.get(_SESSION, ""), context.request_id or "")
    if call.session:
        _running[call] = task
    try:
        await asyncio.wait({task})
    finally:
        if _running.get(call) is task:
            del _running[call]
        await stop([task])
    return _result(tool, task, request.id)


def _result(tool: OfferedTool, task: asyncio.Task[Any], request_id: str) -> CallToolResult:
    if task.cancelled():
        return failed("the call was cancelled")
    error = task.exception()
    if isinstance(error, Exception):
        return failed(f"{known_error(error).message} [#{request_id}]")
    result = task.result()
    return CallToolResult(
        content=[TextContent(text=tool.text(result))], structured_content=msgspec.to_builtins(result)
    )


def _request(context: Context) -> ApiRequest:
    assert context.request is not None
    return ApiRequest(context.request.scope)


def _offered(request: ApiRequest) -> list[OfferedTool]:
    return offered(write=request.services.settings.mcp.write)


_SERVER = make_server(_list, _call)
