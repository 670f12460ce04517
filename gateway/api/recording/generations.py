"""Generations that clients ask for, as records of the request log."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from gateway.api.services import Services
from gateway.api.streaming.merge import merged
from gateway.base.errors import CLIENT_GONE, HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent
from gateway.store.request_log import Kind, RequestRecord
from gateway.telemetry.generations import GenerationRecorder


async def logged_generation(
    services: Services, call: GenerateCall, user: str | None, *, kind: Kind = "chat"
) -> AsyncGenerator[GenerationEvent, None]:
    """The events of ``call``; the request is recorded however they end."""
    async with aclosing(logged_generations(services, [call], user, kind=kind)) as events:
        async for _, event in events:
            yield event


async def logged_generations(
    services: Services,
    calls: Sequence[GenerateCall],
    user: str | None,
    *,
    kind: Kind = "chat",
    keep: bool = True,
) -> AsyncGenerator[tuple[int, GenerationEvent], None]:
    """The events of the generations that answer one request, each with the index of its call.

    The first error ends them all. With ``keep`` one record of the request is stored, however they end.
    """
    entry = _Entry(calls, services.model.name, user, kind)
    sources = [services.inference.generate(call) for call in calls]
    try:
        async with aclosing(_numbered(sources)) as events:
            async for number, event in events:
                entry.see(number, event)
                yield number, event
    except HearthError as error:
        entry.status, entry.error = error.status, error.code
        raise
    except Exception:
        entry.status, entry.error = 500, "internal"
        raise
    finally:
        if not entry.ended and entry.error is None and services.drain.stopping:
            entry.status, entry.error = 503, "shutting_down"
        if keep:
            await services.record(entry.record)


async def _numbered(
    sources: Sequence[AsyncGenerator[GenerationEvent, None]],
) -> AsyncGenerator[tuple[int, GenerationEvent], None]:
    """A single source is read in this task; several need tasks of their own."""
    if len(sources) > 1:
        async with aclosing(merged(sources)) as events:
            async for numbered in events:
                yield numbered
        return
    async with aclosing(sources[0]) as only:
        async for event in only:
            yield 0, event


class _Entry:
    def __init__(self, calls: Sequence[GenerateCall], model: str, user: str | None, kind: Kind) -> None:
        self._outputs = [GenerationRecorder(call, kind) for call in calls]
        self._kind = kind
        self._call = calls[0]
        self._model = model
        self._details = {"user": user} if user else {}
        self._started_at = time.time()
        self._begun = time.monotonic()
        self.status = CLIENT_GONE  # until something else happens
        self.error: str | None = None

    @property
    def ended(self) -> bool:
        """Whether every generation has finished."""
        return all(output.finished is not None for output in self._outputs)

    def see(self, number: int, event: GenerationEvent) -> None:
        self._outputs[number].see(event)
        if self.ended:
            self.status = 200

    def record(self) -> RequestRecord:
        messages = self._call.messages or []
        asked = [message.content for message in messages if message.role == "user"]
        return RequestRecord(
            id=self._call.id,
            kind=self._kind,
            started_at=self._started_at,
            seconds=time.monotonic() - self._begun,
            status=self.status,
            text=str(asked[-1]) if asked else self._call.prompt or "",
            answer="\n\n".join(output.text for output in self._outputs),
            owner=self._call.owner,
            model=self._model,
            error=self.error or ("client_gone" if self.status == CLIENT_GONE else None),
            details=self._details,
            generations=[output.record() for output in self._outputs],
        )
