"""An Inference that plays a script and records its calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

import msgspec

from gateway.base.errors import ModelUnavailableError
from gateway.inference.interface import (
    GenerateCall,
    GenerationEvent,
    HostHealth,
    KeepAlive,
    LoadProgress,
    ModelInfo,
)
from model_host.protocol import Delta, Finished, Message, Prefill, Started, Tool, ToolDelta

Script = Callable[[GenerateCall], Sequence[str | Delta | ToolDelta]]


def befunge(call: GenerateCall) -> list[str]:
    """A search term if the schema is a list, otherwise a cited sentence."""
    schema = call.json_schema
    if isinstance(schema, dict) and schema.get("type") == "array":
        return ['["Befunge"]']
    return ["Chris ", "Pressey ", "created ", "Befunge ", "[1]."]


class ScriptedInference:
    """Deterministic. ``delay`` seconds pass before each piece; ``error`` is raised after ``error_after`` pieces."""

    def __init__(self, script: Script = befunge) -> None:
        self.script = script
        self.delay = 0.0
        self.loading = 0.0
        self.error: Exception | None = None
        self.error_after = 0
        self.reads: list[tuple[int, int]] = []  # progress of every prompt: tokens done, of all
        self.calls: list[GenerateCall] = []
        self.kept: list[KeepAlive] = []  # of every call, in order
        self.running = 0
        self.begun = asyncio.Semaphore(0)  # one permit per generation
        self.finished = 0
        self.cancelled = asyncio.Event()
        self.events: list[str] = []
        self.forgotten: list[str] = []
        self.state = HostHealth(state="stopped")

    async def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        self.calls.append(call)
        self.kept.append(call.keep_alive)
        self.running += 1
        self.begun.release()
        completed = False
        try:
            if self.loading:
                yield LoadProgress("starting", 0.5)
                await asyncio.sleep(self.loading)
            if self.error is not None and self.error_after == 0:
                raise self.error
            prompt = await self.count_prompt(call.messages or [])
            yield Started(call.id, prompt, 2, 0.0)
            for done, total in self.reads:
                yield Prefill(call.id, done, total)
            pieces = self.script(call)
            for index, piece in enumerate(pieces, 1):
                await asyncio.sleep(self.delay)
                yield Delta(call.id, piece, 1) if isinstance(piece, str) else piece
                if self.error is not None and index == self.error_after:
                    raise self.error
            completed = True
            yield self._finished(call, prompt, pieces)
        finally:
            self.running -= 1
            if completed:
                self.finished += 1
            else:
                self.cancelled.set()

    def _finished(
        self, call: GenerateCall, prompt: int, pieces: Sequence[str | Delta | ToolDelta]
    ) -> Finished:
        limit = call.max_tokens
        called = any(isinstance(piece, ToolDelta) for piece in pieces)
        return Finished(
            id=call.id,
            reason="length"
            if limit is not None and len(pieces) >= limit
            else ("tool_calls" if called else "stop"),
            prompt_tokens=prompt,
            cached_tokens=2,
            completion_tokens=len(pieces),
            seed=call.sampling.seed or 7,
        )

    async def count(self, texts: list[str], *, keep_alive: KeepAlive = None) -> list[int]:
        self.kept.append(keep_alive)
        return [len(text.split()) for text in texts]

    async def count_prompt(
        self, messages: list[Message], *, tools: Sequence[Tool] = (), keep_alive: KeepAlive = None
    ) -> int:
        texts = [
            message.content if isinstance(message.content, str) else "".join(p.text for p in message.content)
            for message in messages
        ]
        return 4 * len(messages) + sum(await self.count(texts))

    async def tokenize(self, text: str, *, ends: bool = False, keep_alive: KeepAlive = None) -> list[int]:
        return list(b"<" * ends + text.encode())

    async def detokenize(self, tokens: list[int], *, keep_alive: KeepAlive = None) -> str:
        return bytes(tokens).decode("utf-8", "replace")

    async def token_bytes(self, tokens: list[int], *, keep_alive: KeepAlive = None) -> list[bytes]:
        return [bytes([token]) for token in tokens]

    async def model_info(self, *, keep_alive: KeepAlive = None) -> ModelInfo:
        self.kept.append(keep_alive)
        return ModelInfo(name="scripted", n_ctx=8192, n_ctx_train=8192)

    def health(self) -> HostHealth:
        return self.state

    async def check(self) -> None:
        if self.state.state == "broken":
            raise ModelUnavailableError(self.state.problem or "", retry_after=self.state.retry_after)

    async def refresh_stats(self) -> None:
        self.events.append("stats")

    async def forget(self, owner: str) -> None:
        """Nothing is kept; the owner is noted in ``forgotten``."""
        self.forgotten.append(owner)

    async def warm(self) -> None:
        self.events.append("warm")
        if self.error is not None:
            raise self.error
        self.state = msgspec.structs.replace(self.state, state="ready", pid=4711)

    async def unload(self) -> None:
        self.events.append("unload")
        self.state = HostHealth(state="stopped")

    async def close(self) -> None:
        self.events.append("close")
