"""Generations in the request log: what was asked, what came out, and how it ended."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, cast

import msgspec

from gateway.api.http.errors import CLIENT_GONE
from gateway.api.services import Services
from gateway.api.streaming.merge import merged
from gateway.base.errors import HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent
from gateway.store.request_log import GenerationRecord, Kind, RequestRecord
from model_host.protocol import Delta, Finished, ToolDelta


async def logged_generation(
    services: Services, call: GenerateCall, user: str | None, *, kind: Kind = "chat"
) -> AsyncGenerator[GenerationEvent, None]:
    """The events of ``call``; when they end, in whatever way, the request is recorded."""
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
    """The events of generations that answer one request side by side, each with its call's number.

    The first error ends them all. When they end, in whatever way, one record of the request is kept,
    unless the client does not want that.
    """
    entry = _Entry(calls, services.model.name, user, kind)
    sources = [
        cast("AsyncGenerator[GenerationEvent, None]", services.inference.generate(call)) for call in calls
    ]
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
    """One source is read here and now; several need tasks."""
    if len(sources) > 1:
        async with aclosing(merged(sources)) as events:
            async for numbered in events:
                yield numbered
        return
    async with aclosing(sources[0]) as only:
        async for event in only:
            yield 0, event


class _Entry:
    """What is known so far of one request."""

    def __init__(self, calls: Sequence[GenerateCall], model: str, user: str | None, kind: Kind) -> None:
        self._outputs = [_Output(call, kind) for call in calls]
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
        """Whether every generation came to its end."""
        return all(output.end is not None for output in self._outputs)

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


class _Output:
    """What one generation has made so far."""

    def __init__(self, call: GenerateCall, step: str) -> None:
        self._call = call
        self._step = step
        self._pieces: list[str] = []
        self.end: Finished | None = None

    @property
    def text(self) -> str:
        """The text, and each tool call on a line of its own: name, arguments."""
        return "".join(self._pieces)

    def see(self, event: GenerationEvent) -> None:
        if isinstance(event, Delta):
            self._pieces.append(event.text)
        elif isinstance(event, ToolDelta):
            if event.name is not None:
                self._pieces.append(f"\n{event.name} " if self._pieces else f"{event.name} ")
            self._pieces.append(event.arguments)
        elif isinstance(event, Finished):
            self.end = event

    def record(self) -> GenerationRecord:
        end = self.end
        counts: dict[str, Any] = (
            {
                "prompt_tokens": end.prompt_tokens,
                "cached_tokens": end.cached_tokens,
                "completion_tokens": end.completion_tokens,
                "queue_seconds": end.queue_seconds,
                "prefill_seconds": end.prefill_seconds,
                "decode_seconds": end.decode_seconds,
                "seed": end.seed,
                "finish_reason": end.reason,
            }
            if end is not None
            else {}
        )
        return GenerationRecord(
            step=self._step,
            messages=self._prompt(),
            output=self.text,
            sampling=msgspec.to_builtins(self._call.sampling) | {"max_tokens": self._call.max_tokens},
            obeyed=self._call.obeyed,
            **counts,
        )

    def _prompt(self) -> list[dict[str, Any]]:
        """The turns; text that was no chat is one of the role ``prompt``."""
        if self._call.prompt is not None:
            return [{"role": "prompt", "content": self._call.prompt}]
        return [msgspec.to_builtins(message) for message in self._call.messages or []]
