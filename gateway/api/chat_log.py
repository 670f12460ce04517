"""Chat completions in the request log: what was asked, what came out, and how it ended."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, cast

import msgspec
import structlog

from gateway.api.errors import CLIENT_GONE
from gateway.api.services import Services
from gateway.errors import HearthError
from gateway.inference.interface import GenerateCall, GenerationEvent
from gateway.store.request_log import GenerationRecord, RequestRecord
from model_host.protocol import Delta, Finished

log = structlog.get_logger(__name__)


async def logged_generation(
    services: Services, call: GenerateCall, user: str | None
) -> AsyncGenerator[GenerationEvent, None]:
    """The events of ``call``; when they end, in whatever way, the request is recorded."""
    entry = _Entry(call, services.model.name, user)
    source = cast("AsyncGenerator[GenerationEvent, None]", services.inference.generate(call))
    try:
        async with aclosing(source) as events:
            async for event in events:
                entry.see(event)
                yield event
    except HearthError as error:
        entry.status, entry.error = error.status, error.code
        raise
    except Exception:
        entry.status, entry.error = 500, "internal"
        raise
    finally:
        if entry.end is None and entry.error is None and services.drain.stopping:
            entry.status, entry.error = 503, "shutting_down"
        await _store(services, entry.record())


async def _store(services: Services, record: RequestRecord) -> None:
    try:
        await services.record(record)
    except HearthError as error:  # the reply matters more than its record
        log.error("the request could not be recorded", code=error.code, message=error.message)


class _Entry:
    """What is known so far of one chat completion."""

    def __init__(self, call: GenerateCall, model: str, user: str | None) -> None:
        self._call = call
        self._model = model
        self._details = {"user": user} if user else {}
        self._started_at = time.time()
        self._begun = time.monotonic()
        self._pieces: list[str] = []
        self.end: Finished | None = None
        self.status = CLIENT_GONE  # until something else happens
        self.error: str | None = None

    def see(self, event: GenerationEvent) -> None:
        if isinstance(event, Delta):
            self._pieces.append(event.text)
        elif isinstance(event, Finished):
            self.end = event
            self.status = 200

    def record(self) -> RequestRecord:
        messages = self._call.messages or []
        asked = [message.content for message in messages if message.role == "user"]
        return RequestRecord(
            id=self._call.id,
            kind="chat",
            started_at=self._started_at,
            seconds=time.monotonic() - self._begun,
            status=self.status,
            text=str(asked[-1]) if asked else "",
            answer="".join(self._pieces),
            owner=self._call.owner,
            model=self._model,
            error=self.error or ("client_gone" if self.status == CLIENT_GONE else None),
            details=self._details,
            generations=[self._generation()],
        )

    def _generation(self) -> GenerationRecord:
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
            step="chat",
            messages=[msgspec.to_builtins(message) for message in self._call.messages or []],
            output="".join(self._pieces),
            sampling=msgspec.to_builtins(self._call.sampling),
            **counts,
        )
