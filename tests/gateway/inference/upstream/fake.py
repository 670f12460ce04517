"""An OpenAI-compatible server with switches, on a real socket: dialects and failures that no installed server has."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from gateway.config.settings import ServerSettings
from gateway.server.serve import listening_socket

PROBED = "Say hello."


class FakeServer:
    """Answers each chat with the next of ``replies``, a word at a time.

    ``held`` names the fields that it obeys; ``drop_after`` ends a reply in the middle after that many words, ``status``
    refuses chats, and ``gate`` holds words from ``hold_at`` on back until it is set. ``chats`` are the bodies of real
    requests, and ``sessions`` the sessions that they name. ``listing`` holds the list of models back until it is set,
    ``probing`` the replies to probes, and ``page`` (a status and text) is what comes instead of it.
    """

    def __init__(self, **switches: Any) -> None:
        self.url = ""
        self.program = "vllm"
        self.held: set[str] = {"structured_outputs"}
        self.tokenize = "prompt"
        self.streams = True
        self.knows = {"top_k", "logprobs"}  # other optional fields are refused
        self.shows_tools = True
        self.replies: list[str] = []
        self.key = ""
        self.drop_after: int | None = None
        self.status = 200
        self.code: str | None = None
        self.stop_reason: str | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.hold_at = 0  # the first word that the gate holds back
        self.chats: list[dict[str, Any]] = []
        self.sessions: list[str | None] = []
        self.listing = asyncio.Event()
        self.listing.set()
        self.probing = asyncio.Event()
        self.probing.set()
        self.page: tuple[int, str] | None = None
        self.lists = 0
        self.probes = 0
        self.open = 0
        self.left = asyncio.Event()  # a client has closed its connection
        for name, value in switches.items():
            setattr(self, name, value)

    def app(self) -> Starlette:
        routes = [
            Route("/v1/models", self._models),
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/tokenize", self._tokenize, methods=["POST"]),
        ]
        return Starlette(routes=routes)

    async def _models(self, request: Request) -> Response:
        self.lists += 1
        await self.listing.wait()
        if self.page is not None:
            return Response(self.page[1], self.page[0])
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            said = f"wrong key {request.headers.get('authorization')}"
            return JSONResponse({"error": {"message": said}}, 401)
        return JSONResponse({"data": [{"id": "m", "owned_by": self.program, "max_model_len": 4096}]})

    async def _tokenize(self, request: Request) -> Response:
        body = await request.json()
        if self.tokenize in body:
            tokens = list(range(len(body[self.tokenize].split())))
            return JSONResponse({"count": len(tokens), "tokens": tokens})
        if "messages" in body and self.tokenize == "prompt":
            words = sum(len(each["content"].split()) for each in body["messages"])
            return JSONResponse({"count": words + 5 * bool(body.get("tools") and self.shows_tools)})
        return JSONResponse({"error": {"message": "no such form"}}, 404)

    async def _chat(self, request: Request) -> Response:
        body = await request.json()
        probe = body["messages"][0]["content"] == PROBED
        if probe:
            self.probes += 1
            await self.probing.wait()
        else:
            self.chats.append(body)
            self.sessions.append(request.headers.get("x-session-id"))
        if unknown := {"top_k", "logprobs"} & set(body) - self.knows:
            return JSONResponse({"error": {"message": f"unknown field {unknown}"}}, 400)
        if self.status != 200 and not probe:
            return JSONResponse({"error": {"message": "told to fail", "code": self.code}}, self.status)
        words = (self.replies.pop(0) if self.replies and not probe else "hello there friend").split(" ")
        if probe and self.held & set(body):
            words = ['"zq7"']
        if not (body.get("stream") and self.streams):
            message = {"role": "assistant", "content": " ".join(words)}
            usage = {"prompt_tokens": 9, "completion_tokens": len(words)}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return JSONResponse({"choices": [choice], "usage": usage})
        return StreamingResponse(self._words(request, words, probe), media_type="text/event-stream")

    async def _held(self, request: Request, index: int) -> None:
        try:
            while index >= self.hold_at and not self.gate.is_set():
                if await request.is_disconnected():
                    raise ConnectionAbortedError
                await asyncio.sleep(0.005)
        except (
            ConnectionAbortedError,
            asyncio.CancelledError,
        ):  # Starlette or this loop notices it first
            self.left.set()
            raise

    async def _words(self, request: Request, words: list[str], probe: bool) -> AsyncIterator[str]:
        self.open += not probe
        try:
            for index, word in enumerate(words):
                if not probe:
                    await self._held(request, index)
                    if index == self.drop_after:
                        raise ConnectionAbortedError
                text = word if index == 0 else f" {word}"
                yield _event({"choices": [{"index": 0, "delta": {"content": text}}]})
            end = {"index": 0, "delta": {}, "finish_reason": "stop", "stop_reason": self.stop_reason}
            yield _event({"choices": [end]})
            details = {"cached_tokens": 3}
            counts = {"prompt_tokens": 9, "completion_tokens": len(words), "prompt_tokens_details": details}
            yield _event({"choices": [], "usage": counts})
            yield "data: [DONE]\n\n"
        finally:
            self.open -= not probe


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content)}\n\n"


@asynccontextmanager
async def serving(fake: FakeServer, port: int = 0) -> AsyncIterator[FakeServer]:
    """Run it on a loopback port."""
    with listening_socket(ServerSettings(port=port)) as sock:
        fake.url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        config = uvicorn.Config(fake.app(), log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
        task = asyncio.create_task(server._serve(sockets=[sock]))
        try:
            yield fake
        finally:
            server.should_exit = server.force_exit = True
            await task
