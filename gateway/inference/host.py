"""Inference in a local child process that owns the model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from functools import cached_property
from typing import TypeVar

import msgspec

from gateway.base.errors import ModelUnavailableError
from gateway.base.structs import view
from gateway.inference.client import HostClient, model_info, wrong_reply
from gateway.inference.counts import CountCache, batches
from gateway.inference.interface import GenerateCall, GenerationEvent, HostHealth, KeepAlive, ModelInfo
from gateway.inference.process.failures import request_failure, stopped
from gateway.inference.process.link import HostLink, encode
from gateway.inference.process.snapshots import delete_snapshots
from gateway.inference.process.speed_meter import SpeedMeter
from model_host.protocol import (
    Count,
    Counted,
    Detokenize,
    Detokenized,
    Failed,
    Finished,
    Forget,
    Forgotten,
    Generate,
    Message,
    RequestEvent,
    Tool,
)

T = TypeVar("T")

_PIECES_AT_ONCE = 65_536  # tokens whose bytes fit one line of the protocol


class HostInference(HostClient):
    """The :class:`gateway.inference.interface.Inference` of a model host."""

    @cached_property
    def _known_counts(self) -> CountCache:
        return CountCache()

    @cached_property
    def _speeds(self) -> SpeedMeter:
        return SpeedMeter(self._thread_plans, self._settings.threads)

    async def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        message = view(Generate, call, id=self.wire_id(call.id))
        line = encode(message)  # before a start: an invalid request must not start a host
        with self._idle.begin(call.keep_alive) as use:
            waiter = self._supervisor.join()
            try:
                while not isinstance(link := await waiter.next(), HostLink):
                    yield link
            finally:
                self._supervisor.leave(waiter)
            with self._speeds.running(call.lane) as alone:
                async with self.exchange(link, message.id, line, use) as request:
                    while not isinstance(
                        event := _generation_event(await request.next_event(), call), Finished
                    ):
                        yield event
                if alone():
                    await self._speeds.take(link.plan, event)
        yield event

    def health(self) -> HostHealth:
        """See :meth:`HostClient.health`; with the speed of the model."""
        health, link = super().health(), self._supervisor.link
        speed = self._speeds.speed(link.plan) if link is not None and health.state == "ready" else None
        return msgspec.structs.replace(health, speed=speed, foreground=self._speeds.foreground)

    async def count(self, texts: list[str], *, keep_alive: KeepAlive = None) -> list[int]:
        with self._idle.begin(keep_alive) as use:
            link = await self._supervisor.ensure_ready()
            self._known_counts.use_model(link.ready.result().fingerprint)

            async def count(unknown: list[str]) -> list[int]:
                counts: list[int] = []
                for batch in batches(unknown):
                    message = Count(id=self.wire_id("count"), texts=batch)
                    answer = await self.answer(link, message, Counted, use)
                    if len(answer.counts) != len(batch):
                        raise wrong_reply(answer)
                    counts += answer.counts
                return counts

            return await self._known_counts.counted(texts, count)

    async def count_prompt(self, messages: list[Message], *, tools: Sequence[Tool] = ()) -> int:
        message = Count(id=self.wire_id("count"), messages=messages, tools=list(tools))
        return _only((await self.ask(message, Counted)).counts)

    async def tokenize(self, text: str, *, ends: bool = False) -> list[int]:
        message = Count(id=self.wire_id("tokenize"), texts=[text], return_tokens=True, ends=ends)
        return _only((await self.ask(message, Counted)).tokens)

    async def detokenize(self, tokens: list[int]) -> str:
        message = Detokenize(id=self.wire_id("detokenize"), tokens=tokens)
        return (await self.ask(message, Detokenized)).text

    async def token_bytes(self, tokens: list[int]) -> list[bytes]:
        pieces: list[bytes] = []
        for start in range(0, len(tokens), _PIECES_AT_ONCE):
            part = tokens[start : start + _PIECES_AT_ONCE]
            message = Detokenize(id=self.wire_id("detokenize"), tokens=part, return_pieces=True)
            answer = await self.ask(message, Detokenized)
            if answer.pieces is None or len(answer.pieces) != len(part):
                raise wrong_reply(answer)
            pieces += map(bytes, answer.pieces)
        return pieces

    async def model_info(self, *, keep_alive: KeepAlive = None) -> ModelInfo:
        with self._idle.begin(keep_alive):
            return model_info(await self._supervisor.ensure_ready())

    async def forget(self, owner: str) -> None:
        try:
            await self._forget_in_memory(owner)
        finally:
            await self._supervisor.ended()  # an ending host writes snapshots
            if self._snapshots is not None:
                await asyncio.to_thread(delete_snapshots, self._snapshots, owner)

    async def _forget_in_memory(self, owner: str) -> None:
        link = self._supervisor.link
        if link is None or self._supervisor.state != "ready":
            return
        message = Forget(id=self.wire_id("forget"), owner=owner)
        try:
            with self._idle.begin() as use:
                await self.answer(link, message, Forgotten, use, cancellable=False)
        except ModelUnavailableError:
            await self._supervisor.ended()
            if self._supervisor.link is link:
                raise  # otherwise the host died, and its KV cache with it


def _only(values: list[T] | None) -> T:
    if values is None or len(values) != 1:
        raise wrong_reply(values)
    return values[0]


def _generation_event(event: RequestEvent, call: GenerateCall) -> GenerationEvent:
    if isinstance(event, Failed):
        raise request_failure(event, {"json_schema": call.schema_field})
    if not isinstance(event, GenerationEvent):
        raise wrong_reply(event)
    if isinstance(event, Finished) and event.reason == "cancelled":
        raise stopped("asked").error  # the reader did not cancel, so the host was stopped
    return event
