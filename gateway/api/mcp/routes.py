"""POST /mcp."""

from __future__ import annotations

import asyncio
from importlib import import_module

from gateway.api.http.endpoint import JSON, Endpoint
from gateway.api.mcp.tool import MISSING
from gateway.api.services import ApiRequest
from gateway.base.errors import HearthError


async def serve(request: ApiRequest) -> object:
    """One message of the Model Context Protocol, Streamable HTTP."""
    try:
        # Takes a second and memory, so only the first request does it.
        transport = await asyncio.to_thread(import_module, "gateway.api.mcp.transport")
    except ImportError:  # or an older version is installed
        raise HearthError(MISSING, status=501, code="mcp_not_installed") from None
    return transport.McpReply(request, await request.body())


# The protocol describes its own messages.
ENDPOINTS = (Endpoint("POST", "/mcp", serve, media=(JSON,), described=False),)
