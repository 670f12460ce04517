"""An MCP server on standard input and output that passes every call to the running server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from gateway.api.http.errors import OWN_ERROR
from gateway.api.mcp.server import Context, failed, listed, make_server
from gateway.api.mcp.tools import offered
from gateway.base.errors import HearthError
from gateway.cli.common.client import ServerOptions, network_errors

T = TypeVar("T")

_VERSION = "2026-07-28"  # without a handshake: one request a call
# Between two parts of a reply: the server sends something every 15 s.
_TIMEOUT = httpx2.Timeout(60.0, connect=5.0)


async def serve(server: ServerOptions) -> None:
    """Serve until standard input ends."""

    async def on_list(context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        """The server's tools. Without a server, those that read: an editor may ask for the list only once."""
        try:
            cursor = params.cursor if params is not None else None
            return await _forward(server, lambda client: client.list_tools(cursor=cursor))
        except HearthError:
            return listed(offered(write=False))

    async def on_call(context: Context, params: CallToolRequestParams) -> CallToolResult:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            await context.session.report_progress(progress, total, message)

        try:
            return await _forward(
                server,
                lambda client: client.call_tool(params.name, params.arguments, progress_callback=on_progress),
            )
        except HearthError as error:
            return failed(error.message)

    stdio = make_server(on_list, on_call)
    async with stdio_server() as (read, write):
        await stdio.run(read, write, stdio.create_initialization_options())


async def _forward(server: ServerOptions, call: Callable[[Client], Awaitable[T]]) -> T:
    """The running server's reply. Cancelling this closes the connection, which ends the work. Raises HearthError."""
    found = server.connect()
    headers = {"Authorization": f"Bearer {found.key}"} if found.key else {}
    try:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT) as http,
            Client(
                streamable_http_client(f"{found.url}/mcp", http_client=http, max_sse_event_size=None),
                mode=_VERSION,
                cache=None,
            ) as client,
        ):
            return await call(client)
    except ExceptionGroup as group:
        with network_errors(found.url):
            raise _error(group, found.url) from None
    raise AssertionError("nothing above suppresses an error")


def _error(error: Exception, url: str) -> Exception:
    """The error in the package's groups of one, as it is shown."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, httpx2.TransportError | httpx2.InvalidURL):
        return error
    if not isinstance(error, MCPError) or error.code not in (OWN_ERROR, INVALID_PARAMS):
        return HearthError(f"{url}/mcp answered: {error}: is it a hearth server?")
    if error.code == INVALID_PARAMS:
        return error
    details = error.error.data
    remedy = "; give `hearth mcp` a key with HEARTH_API_KEY or --key"
    unauthorized = isinstance(details, dict) and details.get("code") == "unauthorized"
    return HearthError(error.error.message + (remedy if unauthorized else ""))
