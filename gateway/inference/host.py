"""Inference by a local child process that owns the model."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import psutil

from gateway.catalog import ResolvedModel
from gateway.errors import HearthError
from gateway.inference.breaker import Breaker
from gateway.inference.counts import CountCache, batches
from gateway.inference.failures import request_failure, stopped
from gateway.inference.interface import GenerateCall, GenerationEvent, HostHealth, KeepAlive, ModelInfo
from gateway.inference.keepalive import IdleClock, Use
from gateway.inference.launch import Launcher
from gateway.inference.link import HostLink, encode
from gateway.inference.pending import OpenRequest, RequestEvent
from gateway.inference.supervisor import Supervisor
from gateway.settings import ModelSettings
from model_host.protocol import (
    Count,
    Counted,
    Detokenize,
    Detokenized,
    Embedded,
    Failed,
    Finished,
    Forget,
    Forgotten,
    Generate,
    Message,
    Tool,
    owner_digest,
)

_MAX_ID = 128
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9._:-]")


class HostInference:
    """:class:`gateway.inference.interface.Inference` on a model host that is started on demand.

    ``model`` may be a callable; it is asked at every start, so that a model pulled meanwhile is picked up.
    ``command`` replaces the host's command line. ``snapshots`` is where
    the host saves KV sequences. An object belongs to the event loop that first uses it.
    """

    def __init__(
        self,
        model: ResolvedModel | Callable[[], ResolvedModel],
        settings: ModelSettings,
        *,
        command: Sequence[str] | None = None,
        breaker: Breaker | None = None,
        snapshots: Path | None = None,
    ) -> None:
        self._settings = settings
        self._idle = IdleClock(settings.idle_seconds)
        self._snapshots = snapshots
        launcher = Launcher(model, settings, command, snapshots=snapshots)
        self._supervisor = Supervisor(launcher, settings, self._idle, breaker or Breaker())
        self._known_counts = CountCache()
        self._numbers = itertools.count(1)

    # ------------------------------------------------------------------------------------ requests

    async def generate(self, call: GenerateCall) -> AsyncGenerator[GenerationEvent, None]:
        """Stream one generation; a generation that ends because the host is stopped is an error, not an end."""
        message = self._generate_message(call)
        line = encode(message)  # what cannot be sent must not start a host
        with self._idle.begin(call.keep_alive) as use:
            waiter = self._supervisor.join()
            try:
                while not isinstance(link := await waiter.next(), HostLink):
                    yield link
            finally:
                self._supervisor.leave(waiter)
            async with self._exchange(link, message.id, line, use) as request:
                while not isinstance(event := _generation_event(await request.next_event()), Finished):
                    yield event
        yield event

    async def count(self, texts: list[str], *, keep_alive: KeepAlive = None) -> list[int]:
        """Tokens of each text as plain text; known counts of the running model are not asked for again."""
        counts: dict[str, int] = {}
        with self._idle.begin(keep_alive) as use:
            link = await self._supervisor.ensure_ready()
            self._known_counts.use_model(link.ready.result().fingerprint)
            unknown = []
            for text in dict.fromkeys(texts):
                known = self._known_counts.get(text)
                if known is None:
                    unknown.append(text)
                else:
                    counts[text] = known
            for batch in batches(unknown):
                answer = await self._counted(link, Count(id=self._wire_id("count"), texts=batch), use)
                for text, count in zip(batch, answer.counts, strict=True):
                    counts[text] = count
                    self._known_counts.put(text, count)
        return [counts[text] for text in texts]

    async def count_prompt(
        self, messages: list[Message], *, tools: Sequence[Tool] = (), keep_alive: KeepAlive = None
    ) -> int:
        """Tokens of a whole chat prompt, template and tools included."""
        with self._idle.begin(keep_alive) as use:
            link = await self._supervisor.ensure_ready()
            message = Count(id=self._wire_id("count"), messages=messages, tools=list(tools))
            return (await self._counted(link, message, use)).counts[0]

    async def tokenize(self, text: str, *, keep_alive: KeepAlive = None) -> list[int]:
        """Token ids of ``text`` as plain text."""
        with self._idle.begin(keep_alive) as use:
            link = await self._supervisor.ensure_ready()
            message = Count(id=self._wire_id("tokenize"), texts=[text], return_tokens=True)
            answer = await self._counted(link, message, use)
            if answer.tokens is None or len(answer.tokens) != 1:
                raise HearthError(f"the model host answered a tokenization with {answer!r:.200}")
            return answer.tokens[0]

    async def detokenize(self, tokens: list[int], *, keep_alive: KeepAlive = None) -> str:
        """The text of token ids."""
        return (await self._detokenized(tokens, False, keep_alive)).text

    async def token_bytes(self, tokens: list[int], *, keep_alive: KeepAlive = None) -> list[bytes]:
        """What each token adds to a text."""
        answer = await self._detokenized(tokens, True, keep_alive)
        if answer.pieces is None or len(answer.pieces) != len(tokens):
            raise HearthError(f"the model host answered a detokenization with {answer!r:.200}")
        return [bytes(piece) for piece in answer.pieces]

    async def model_info(self, *, keep_alive: KeepAlive = None) -> ModelInfo:
        """The served model; starts the host when needed."""
        with self._idle.begin(keep_alive):
            return _model_info(await self._supervisor.ensure_ready())

    # ---------------------------------------------------------------------------------- operations

    def health(self) -> HostHealth:
        """The state right now. Never blocks, never wakes the model."""
        supervisor = self._supervisor
        link, state = supervisor.link, supervisor.state
        stats = link.stats if link is not None else None
        counters = msgspec.structs.asdict(stats) if stats is not None else {}
        counters.pop("id", None)
        return HostHealth(
            state=state,
            pid=link.process.pid if link is not None else None,
            rss_bytes=_resident_bytes(link.process.pid) if link is not None else None,
            uptime_seconds=time.monotonic() - link.started_at if link is not None else None,
            idle_seconds_left=self._idle.seconds_left if state == "ready" else None,
            open_requests=self._idle.open,
            waiting=stats.waiting if stats is not None else 0,
            running=stats.running if stats is not None else 0,
            restarts=supervisor.breaker.crashes,
            problem=supervisor.problem,
            retry_after=supervisor.breaker.retry_after(),
            load_progress=supervisor.load_progress if state == "starting" else None,
            model=_model_info(link) if link is not None and state == "ready" else None,
            stats=counters,
        )

    async def refresh_stats(self) -> None:
        """Ask a running host for its counters. Returns without new ones when none runs or none come in time."""
        link = self._supervisor.link
        if link is not None and self._supervisor.state == "ready":
            await link.refresh_stats()

    async def forget(self, owner: str) -> None:
        """Drop what the host keeps of an owner's text, in memory and on disk. Starts no host."""
        link = self._supervisor.link
        if link is not None and self._supervisor.state == "ready":
            with self._idle.begin() as use:
                answer = await self._answer(link, Forget(id=self._wire_id("forget"), owner=owner), use)
            if not isinstance(answer, Forgotten):
                raise HearthError(f"the model host answered a forget with {answer!r:.200}")
        if self._snapshots is not None:
            await asyncio.to_thread(_delete_snapshots, self._snapshots, owner)

    async def warm(self) -> None:
        """Start the host and wait until it is ready. Counts as a use, which ends right away."""
        with self._idle.begin():
            await self._supervisor.ensure_ready()

    async def unload(self) -> None:
        """Let the host go once open requests have ended, and wait until it is gone."""
        await self._supervisor.unload()

    async def close(self) -> None:
        """Stop the host now; open requests fail, and so does every later call."""
        await self._supervisor.close()

    # -------------------------------------------------------------------------------------- helpers

    @asynccontextmanager
    async def _exchange(
        self, link: HostLink, wire_id: str, line: bytes, use: Use, *, cancellable: bool = True
    ) -> AsyncIterator[OpenRequest]:
        """Send a request; its events are read in the block. Leaving early abandons it.

        The use lasts until the host ends the request, however early the reader leaves.
        """
        request = link.requests.open(wire_id, use.release)
        use.hold()
        try:
            await link.send(line)
            yield request
        finally:
            if not request.ended:
                if cancellable:
                    link.cancel(wire_id)
                link.expect_end(wire_id, self._settings.stop_grace_seconds)

    async def _counted(self, link: HostLink, message: Count, use: Use) -> Counted:
        event = await self._answer(link, message, use)
        expected = 1 if message.texts is None else len(message.texts)
        if not isinstance(event, Counted) or len(event.counts) != expected:
            raise HearthError(f"the model host answered a count of {expected} with {event!r}")
        return event

    async def _detokenized(self, tokens: list[int], pieces: bool, keep_alive: KeepAlive) -> Detokenized:
        with self._idle.begin(keep_alive) as use:
            link = await self._supervisor.ensure_ready()
            message = Detokenize(id=self._wire_id("detokenize"), tokens=tokens, return_pieces=pieces)
            answer = await self._answer(link, message, use)
        if not isinstance(answer, Detokenized):
            raise HearthError(f"the model host answered a detokenization with {answer!r:.200}")
        return answer

    async def _answer(self, link: HostLink, message: Count | Detokenize | Forget, use: Use) -> RequestEvent:
        """The one event that answers ``message``. It comes within milliseconds, so there is nothing to cancel."""
        line = encode(message)
        async with self._exchange(link, message.id, line, use, cancellable=False) as request:
            event = await request.next_event()
        if isinstance(event, Failed):
            raise request_failure(event)
        return event

    def _generate_message(self, call: GenerateCall) -> Generate:
        fields = {name: getattr(call, name) for name in Generate.__struct_fields__ if name != "id"}
        return Generate(id=self._wire_id(call.id), **fields)

    def _wire_id(self, request_id: str) -> str:
        """Unique for this gateway, and still recognizable: the HTTP request's id and a number."""
        suffix = f":{next(self._numbers)}"
        return _NOT_IN_ID.sub("-", request_id)[: _MAX_ID - len(suffix)] + suffix


def _generation_event(event: RequestEvent) -> GenerationEvent:
    if isinstance(event, Failed):
        raise request_failure(event)
    if isinstance(event, Counted | Detokenized | Embedded | Forgotten):
        raise HearthError(f"the model host answered a generation with {event!r:.200}")
    if isinstance(event, Finished) and event.reason == "cancelled":
        raise stopped("asked").error  # the reader is still here, so it was not the one who cancelled
    return event


def _model_info(link: HostLink) -> ModelInfo:
    ready = link.ready.result()
    return ModelInfo(
        name=link.plan.model.name,
        n_ctx=ready.n_ctx,
        n_ctx_train=ready.n_ctx_train,
        architecture=ready.architecture,
        description=ready.description,
        fingerprint=ready.fingerprint,
        tools=ready.tools,
    )


def _delete_snapshots(folder: Path, owner: str) -> None:
    for path in folder.glob(f"*/{owner_digest(owner)}-*"):
        path.unlink(missing_ok=True)


def _resident_bytes(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
