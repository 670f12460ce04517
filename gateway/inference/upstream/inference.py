"""Inference on upstream servers."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, nullcontext
from functools import partial
from typing import Any, TypeVar

from msgspec.structs import replace

from gateway.base.aio import side_by_side, stop
from gateway.base.errors import HearthError, OverloadedError
from gateway.config.settings import UpstreamSettings
from gateway.inference.counts import CountCache
from gateway.inference.interface import (
    GenerateCall,
    GenerationEvent,
    HostHealth,
    Inference,
    KeepAlive,
    ModelInfo,
)
from gateway.inference.process.speed_meter import SpeedMeter
from gateway.inference.speed import Learned
from gateway.inference.upstream.abilities import Abilities, probe, prompt_tokens, tokenize_body
from gateway.inference.upstream.checked import ATTEMPTS, failed, found_json, instructed
from gateway.inference.upstream.connection import (
    MALFORMED,
    Connection,
    FailedError,
    LostError,
    lost,
    malformed,
)
from gateway.inference.upstream.messages import (
    ReplyEvents,
    cannot,
    chat_messages,
    chat_tools,
    request_of,
)
from gateway.inference.upstream.replicas import OnReplicas, Replica, Replicas
from model_host.protocol import Delta, Finished, Message, Started, Tool

T = TypeVar("T")

_COUNTS_AT_ONCE = 8
_KEY_CHARACTERS = 1024  # of a prompt, as its prefix


class UpstreamInference(OnReplicas[Abilities]):
    """The :class:`gateway.inference.interface.Inference` of the servers in ``settings.urls``.

    ``counter`` counts tokens in place of servers that cannot. Servers do not erase: :meth:`forget`, :meth:`unload` and
    ``keep_alive`` have no effect there.
    """

    def __init__(self, settings: UpstreamSettings, counter: Inference | None = None) -> None:
        self._settings = settings
        self._counter = counter
        look = partial(probe, model=settings.model, context=settings.context, tokenizer=counter is not None)
        self._replicas = Replicas[Abilities](settings.urls, settings.key, settings.silence_seconds, look)
        self._background = asyncio.Semaphore(settings.background * len(settings.urls))
        self._counting = asyncio.Semaphore(_COUNTS_AT_ONCE)
        self._known_counts = CountCache()
        self._meter = SpeedMeter(None, 0)
        self._learned = Learned()
        self._open = self._waiting = 0

    def start(self) -> None:
        """Begin to probe the servers; otherwise the first request does."""
        self._replicas.start()

    async def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        self._open += 1
        self._waiting += 1
        waits = True
        try:
            async with self._background if call.lane == "background" else nullcontext():
                self._waiting -= 1
                waits = False
                with self._meter.running(call.lane) as alone:
                    async with aclosing(self._sent(call)) as events:
                        async for event in events:
                            if isinstance(event, Finished) and alone():
                                self._learned = self._learned.add(event)
                            yield event
        finally:
            self._open -= 1
            self._waiting -= waits

    async def _sent(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        """Send the call, to another server while one is lost, fails or is busy before its first output."""
        tried: list[Replica[Abilities]] = []
        while True:
            replica = await self._replicas.pick(_key(call), tried)
            seen = False
            try:
                async with aclosing(self._from(replica, call)) as events:
                    async for event in events:
                        seen = seen or not isinstance(event, Started)
                        yield event
                return
            except (LostError, FailedError, OverloadedError) as error:
                tried.append(replica)
                replica.refused(error)
                if seen or not self._replicas.another_try(tried, error):
                    raise

    async def _from(
        self, replica: Replica[Abilities], call: GenerateCall
    ) -> AsyncGenerator[GenerationEvent, None]:
        able = replica.able
        assert able is not None, "only ready servers are picked"
        is_checked = call.json_schema is not None and able.schemas == "checked"
        stream = self._checked if is_checked else self._stream
        with replica.used():
            async with aclosing(stream(replica, able, call)) as events:
                async for event in events:
                    yield event
        replica.generated()

    async def _stream(
        self, replica: Replica[Abilities], able: Abilities, call: GenerateCall
    ) -> AsyncGenerator[GenerationEvent, None]:
        seed = call.sampling.seed if call.sampling.seed is not None else secrets.randbits(31)
        path, body = request_of(call, able, self._settings.model, seed)
        reading = ReplyEvents(call, seed)
        counting = [asyncio.create_task(self._prompt_tokens(replica, able, call))]
        try:
            async with aclosing(replica.connection.events(path, body, _session(call))) as events:
                async for event in events:
                    try:
                        made = list(reading.read(event))
                    except MALFORMED:
                        raise malformed(replica.url) from None
                    for found in made:
                        if isinstance(found, Started) and not found.prompt_tokens:
                            found = replace(found, prompt_tokens=await counting[0])
                        yield found
        finally:
            await stop(counting)
        ended = False
        for found in reading.end():
            ended = True
            yield found
        if not ended:
            raise lost(replica.url, "ended its reply without a reason")

    async def _prompt_tokens(self, replica: Replica[Abilities], able: Abilities, call: GenerateCall) -> int:
        """The tokens of a call's prompt if its stream reports them only at its end; 0 if unknown."""
        told = able.program in ("vllm", "llamacpp") or able.prompts in ("gguf", "generation")
        if told or call.messages is None:
            return 0
        try:
            return await self._count_prompt(replica.connection, able, call.messages, call.tools)
        except (HearthError, *MALFORMED):
            return 0

    async def _count_prompt(
        self, server: Connection, able: Abilities, messages: list[Message], tools: Sequence[Tool]
    ) -> int:
        body: dict[str, Any] = {"model": self._settings.model, "messages": chat_messages(messages)}
        if tools:
            body["tools"] = chat_tools(tools)
        return await prompt_tokens(server, able.prompts, body)

    async def _checked(
        self, replica: Replica[Abilities], able: Abilities, call: GenerateCall
    ) -> AsyncGenerator[GenerationEvent, None]:
        """A reply that fits the schema, whole; asked for again until it does. Raises ModelUnavailableError."""
        assert call.json_schema is not None
        wrong = problem = ""
        for _ in range(ATTEMPTS):
            stream = self._stream(replica, able, instructed(call, wrong, problem))
            events = [event async for event in stream]
            text = "".join(event.text for event in events if isinstance(event, Delta))
            found, fault = found_json(text, call.json_schema)
            if fault is None:
                yield next(event for event in events if isinstance(event, Started))
                yield Delta(call.id, found, sum(event.tokens for event in events if isinstance(event, Delta)))
                yield events[-1]
                return
            wrong, problem = text, fault
        raise failed(replica.url, problem)

    async def count(self, texts: list[str], *, keep_alive: KeepAlive = None) -> list[int]:
        if self._counter is not None:
            return await self._counter.count(texts)

        async def count(unknown: list[str]) -> list[int]:
            return [len(tokens) for tokens in await side_by_side(map(self.tokenize, unknown))]

        return await self._known_counts.counted(texts, count)

    async def count_prompt(self, messages: list[Message], *, tools: Sequence[Tool] = ()) -> int:
        if self._counter is not None:
            return await self._counter.count_prompt(messages, tools=tools)
        return await self._ask(lambda server, able: self._count_prompt(server, able, messages, tools))

    async def tokenize(self, text: str, *, ends: bool = False) -> list[int]:
        if self._counter is not None:
            return await self._counter.tokenize(text, ends=ends)

        async def ask(server: Connection, able: Abilities) -> list[int]:
            body = tokenize_body(able.tokens, self._settings.model, text, ends=ends)
            return [int(token) for token in (await server.post("/tokenize", body))["tokens"]]

        return await self._ask(ask)

    async def detokenize(self, tokens: list[int]) -> str:
        if self._counter is not None:
            return await self._counter.detokenize(tokens)

        async def ask(server: Connection, able: Abilities) -> str:
            body = {"model": self._settings.model, "tokens": tokens}
            if able.tokens == "content":
                return str((await server.post("/detokenize", {"tokens": tokens}))["content"])
            return str((await server.post("/detokenize", body))["prompt"])

        return await self._ask(ask)

    async def token_bytes(self, tokens: list[int]) -> list[bytes]:
        if self._counter is not None:
            return await self._counter.token_bytes(tokens)
        raise cannot("with_pieces", "does not say the bytes of tokens; set upstream.tokenizer")

    async def _ask(self, ask: Callable[[Connection, Abilities], Awaitable[T]]) -> T:
        async with self._counting:
            return (await self._replicas.ask(ask))[0]

    async def model_info(self, *, keep_alive: KeepAlive = None) -> ModelInfo:
        await self._replicas.pick(None)
        return self._info()

    def _info(self) -> ModelInfo:
        able = [each.able for each in self._replicas.ready if each.able is not None]
        context = min(each.context for each in able)
        programs = sorted({each.program for each in able if each.program})
        identity = f"upstream\0{self._settings.model}"
        return ModelInfo(
            name=self._settings.model,
            n_ctx=context,
            n_ctx_train=context,
            description=f"{len(able)} of {len(self._replicas.all)} upstream servers ({', '.join(programs)})",
            fingerprint=hashlib.blake2b(identity.encode(), digest_size=16).hexdigest(),
        )

    def health(self) -> HostHealth:
        health = self._replicas.health()
        return replace(
            health,
            open_requests=self._open,
            waiting=self._waiting,
            running=self._open - self._waiting,
            retry_after=1.0 if health.state == "broken" else None,
            model=self._info() if health.state == "ready" else None,
            speed=self._learned.speed,
            foreground=self._meter.foreground,
        )

    async def refresh_stats(self) -> None:
        """Servers are not asked for counters."""

    async def forget(self, owner: str) -> None:
        """Servers do not erase: their caches end with their processes."""

    async def unload(self) -> None:
        """Unload the model that counts tokens; upstream servers manage their own."""
        if self._counter is not None:
            await self._counter.unload()

    async def close(self) -> None:
        await super().close()
        if self._counter is not None:
            await self._counter.close()


def _session(call: GenerateCall) -> str | None:
    key = _key(call)
    if key is None:
        return None
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _key(call: GenerateCall) -> str | None:
    """Key shared by the requests of one conversation: owner, system prompt and first message; None: independent."""
    if call.lane == "retrieval":
        return None
    if call.messages is None:
        return f"{call.owner}\0{str(call.prompt)[:_KEY_CHARACTERS]}"
    head = []
    for message in call.messages:
        head.append(message.text)
        if message.role != "system":
            break
    return "\0".join([call.owner, *head])
