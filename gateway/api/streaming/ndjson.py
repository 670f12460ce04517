"""Streams of JSON lines, as Ollama's clients read them."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Message, Send

from gateway.api.http.endpoint import NDJSON

_SEND_TIMEOUT_SECONDS = 60.0


def ndjson(data: Any) -> bytes:
    """One line of a stream."""
    return msgspec.json.encode(data) + b"\n"


class NdjsonResponse(StreamingResponse):
    """Lines as they come, until the client leaves. The format has no line that means nothing, so there is no ping.

    A client that stops reading is cut off by a TimeoutError, as in a stream of events.
    """

    media_type = NDJSON

    def init_headers(self, headers: Any = None) -> None:
        """The same headers as a stream of events has: nothing on the way may cache or hold back lines."""
        super().init_headers({**(headers or {}), "Cache-Control": "no-cache", "X-Accel-Buffering": "no"})

    async def stream_response(self, send: Send) -> None:
        """Starlette's, with a limit on how long the client may take to read a line."""

        async def bounded(message: Message) -> None:
            async with asyncio.timeout(_SEND_TIMEOUT_SECONDS):
                await send(message)

        await super().stream_response(bounded)
