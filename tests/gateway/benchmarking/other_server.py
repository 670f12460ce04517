"""A server that is not hearth, as far as `hearth bench` looks at one: it refuses fields that it does not know."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.config.settings import ServerSettings
from gateway.server.serve import listening_socket

KNOWN = {"model", "messages", "max_tokens", "temperature", "top_p", "seed", "stream", "stream_options"}


class OtherServer:
    """Answers with one word a token. ``owner`` is what it calls itself; ``usage`` whether it counts tokens."""

    def __init__(self, *, owner: str = "somebody", usage: bool = True, fails: bool = False) -> None:
        self.owner = owner
        self.usage = usage
        self.fails = fails
        self.extra: frozenset[str] = frozenset({"ignore_eos"}) if owner == "llamacpp" else frozenset()
        self.asked: list[dict[str, Any]] = []
        self.looks = 0  # at whether it sleeps

    async def models(self, _: Request) -> Response:
        return JSONResponse(
            {"object": "list", "data": [{"id": "m", "object": "model", "owned_by": self.owner}]}
        )

    async def props(self, _: Request) -> Response:
        self.looks += 1
        return JSONResponse({"total_slots": 4, "is_sleeping": self.looks > 2})

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        if unknown := set(body) - KNOWN - self.extra:
            return JSONResponse({"error": {"message": f"unknown field {min(unknown)}"}}, 400)
        if not body.get("stream"):
            return JSONResponse({"choices": [], "usage": _count(body)})
        self.asked.append(body)
        return StreamingResponse(self._chunks(body), media_type="text/event-stream")

    async def _chunks(self, body: dict[str, Any]) -> AsyncIterator[str]:
        yield _event({"choices": [{"delta": {"role": "assistant", "content": None}}]})
        for _ in range(body["max_tokens"]):
            yield _event({"choices": [{"delta": {"content": "word "}}]})
        if self.fails:
            yield _event({"error": {"message": "out of coffee"}})
        if self.usage:
            yield _event({"choices": [], "usage": _count(body)})
        yield "data: [DONE]\n\n"


def _count(body: dict[str, Any]) -> dict[str, int]:
    words = sum(len(message["content"].split()) for message in body["messages"])
    return {"prompt_tokens": 3 + 2 * words, "completion_tokens": body["max_tokens"]}


def _event(chunk: dict[str, Any]) -> str:
    return f": comment\n\ndata: {json.dumps(chunk)}\n\n"


class _Server(uvicorn.Server):
    """uvicorn that leaves the signals of the tests alone."""

    def capture_signals(self) -> AbstractContextManager[None]:
        return nullcontext()


@asynccontextmanager
async def serving(other: OtherServer) -> AsyncIterator[str]:
    """The address of the running server."""
    routes = [
        Route("/v1/models", other.models),
        Route("/props", other.props),
        Route("/v1/chat/completions", other.chat, methods=["POST"]),
    ]
    server = _Server(uvicorn.Config(Starlette(routes=routes), log_config=None, lifespan="off"))
    with listening_socket(ServerSettings(port=0)) as socket:
        running = asyncio.create_task(server.serve(sockets=[socket]))
        try:
            yield f"http://127.0.0.1:{socket.getsockname()[1]}"
        finally:
            server.should_exit = True
            await running
