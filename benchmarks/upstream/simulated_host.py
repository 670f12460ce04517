"""An OpenAI-compatible server of fixed speed that computes nothing, to measure what stands in front of it.

A token is a word. One worker prefills prompts in their order, `--prefill` tokens per second, and decodes `--decode`
tokens per second for all requests together, which take turns of 8 tokens. A cache of `--cache` tokens keeps the
prompts and replies that were used last, in blocks of 16 tokens; other than that, memory has no limits.

    .venv/bin/python -m benchmarks.upstream.simulated_host --port 9001 --prefill 2000 --decode 200
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks.common import command_line

_BLOCK, _TURN = 16, 8
_CONTEXT = 32_768
_REPLY = 48  # tokens of a reply without `max_tokens`


class Host:
    def __init__(self, prefill: float, decode: float, cache: int) -> None:
        self._prefill = prefill
        self._decode = decode
        self._most_blocks = cache // _BLOCK
        self._blocks: OrderedDict[int, None] = OrderedDict()
        self._busy_until = 0.0

    async def work(self, seconds: float) -> None:
        """Wait for the worker, then for the work. Late wake-ups do not slow it down."""
        self._busy_until = max(time.monotonic(), self._busy_until) + seconds
        await asyncio.sleep(max(0.0, self._busy_until - time.monotonic()))

    def cached(self, words: list[str]) -> int:
        found = 0
        for chain in _chains(words[:-1]):
            if chain not in self._blocks:
                break
            found += _BLOCK
        return found

    def keep(self, words: list[str]) -> None:
        for chain in reversed(_chains(words)):  # the beginning is evicted last
            self._blocks[chain] = None
            self._blocks.move_to_end(chain)
        while len(self._blocks) > self._most_blocks:
            self._blocks.popitem(last=False)

    async def models(self, request: Request) -> Response:
        return JSONResponse({"data": [{"id": "simulated", "owned_by": "vllm", "max_model_len": _CONTEXT}]})

    async def tokenize(self, request: Request) -> Response:
        body = await request.json()
        words = _words(body["messages"]) if "messages" in body else body["prompt"].split()
        return JSONResponse({"count": len(words), "tokens": list(range(len(words)))})

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        reply = [f"w{number}" for number in range(body.get("max_tokens") or _REPLY)]
        if "structured_outputs" in body:
            reply = ['"zq7"']
        events = self._events(_words(body["messages"]), reply)
        if body.get("stream"):
            return StreamingResponse(
                (f"data: {each}\n\n" async for each in events), media_type="text/event-stream"
            )
        usage = [json.loads(each) async for each in events if each != "[DONE]"][-1]["usage"]
        message = {"role": "assistant", "content": " ".join(reply)}
        return JSONResponse({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage})

    async def _events(self, prompt: list[str], reply: list[str]) -> AsyncIterator[str]:
        cached = self.cached(prompt)
        self.keep(prompt)
        await self.work((len(prompt) - cached) / self._prefill)
        for at in range(0, len(reply), _TURN):
            turn = reply[at : at + _TURN]
            await self.work(len(turn) / self._decode)
            for number, word in enumerate(turn, at):
                yield _chunk({"content": f" {word}" if number else word}, None)
        yield _chunk({}, "stop")
        self.keep([*prompt, *reply])
        usage = {"prompt_tokens": len(prompt), "completion_tokens": len(reply)}
        yield json.dumps(
            {"choices": [], "usage": usage | {"prompt_tokens_details": {"cached_tokens": cached}}}
        )
        yield "[DONE]"


def _chunk(delta: dict[str, str], reason: str | None) -> str:
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})


def _words(messages: list[dict[str, Any]]) -> list[str]:
    return [word for each in messages for word in str(each["content"]).split()]


def _chains(words: list[str]) -> list[int]:
    """A number for each whole block, which depends on all blocks before it."""
    chains, last = [], 0
    for at in range(0, len(words) - _BLOCK + 1, _BLOCK):
        last = hash((last, *words[at : at + _BLOCK]))
        chains.append(last)
    return chains


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--prefill", type=float, default=2000.0)
    parser.add_argument("--decode", type=float, default=200.0)
    parser.add_argument("--cache", type=int, default=200_000)
    given = parser.parse_args()
    host = Host(given.prefill, given.decode, given.cache)
    routes = [
        Route("/v1/models", host.models),
        Route("/tokenize", host.tokenize, methods=["POST"]),
        Route("/v1/chat/completions", host.chat, methods=["POST"]),
    ]
    uvicorn.run(Starlette(routes=routes), port=given.port, log_level="warning")


if __name__ == "__main__":
    main()
