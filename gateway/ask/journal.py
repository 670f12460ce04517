"""Events of one question for the client, and its data for the request log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from gateway.ask.text.wording import written_out
from gateway.ask.types import AskCall, AskEvent, Skipped, Stage
from gateway.store.request_log import GenerationRecord, PageRecord, RequestRecord


class Journal:
    """Belongs to one run of the flow; its steps, concurrent ones included, report to it."""

    def __init__(self, call: AskCall) -> None:
        self.call = call
        self.question = written_out(call.question)  # as all steps read it
        self.generations: list[GenerationRecord] = []
        self.pages: list[PageRecord] = []
        self.skipped: list[Skipped] = []
        self.details: dict[str, Any] = {}
        self.answer = ""  # the part already sent
        self.recorded = False
        self._loaded = -1.0
        self._timings: dict[str, float] = {}
        self._started_at = time.time()
        self._start = time.monotonic()
        self._events: asyncio.Queue[AskEvent | None] = asyncio.Queue()

    def emit(self, event: AskEvent) -> None:
        self._events.put_nowait(event)

    def stage(self, name: str, **detail: Any) -> None:
        self.emit(Stage(name, detail))

    def loading(self, fraction: float) -> None:
        """Report how far the model is loaded, at every change of a percent."""
        if round(fraction, 2) != self._loaded:
            self._loaded = round(fraction, 2)
            self.stage("loading", fraction=self._loaded)

    def close(self) -> None:
        self._events.put_nowait(None)

    async def next(self) -> AskEvent | None:
        """Return the next event, or None after the last one."""
        return await self._events.get()

    def skip(self, title: str, reason: str) -> None:
        self.skipped.append(Skipped(title, reason))

    def note(self, what: str, value: Any) -> None:
        """Append to the list ``what`` in the record's details."""
        self.details.setdefault(what, []).append(value)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the duration of the block to the timing ``name``."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._timings[name] = self._timings.get(name, 0.0) + time.monotonic() - start

    def mark(self, name: str) -> None:
        """Set the timing ``name`` to the time since the question arrived, unless it is set."""
        self._timings.setdefault(name, self.elapsed)

    @property
    def elapsed(self) -> float:
        """Seconds since the question arrived."""
        return time.monotonic() - self._start

    def timings(self) -> dict[str, float]:
        """Return seconds by stage so far, with ``total``."""
        timings = self._timings | {"total": self.elapsed}
        return {name: round(seconds, 4) for name, seconds in timings.items()}

    def record(self, model: str, status: int, error: str | None) -> RequestRecord:
        user = {"user": self.call.user} if self.call.user else {}
        return RequestRecord(
            id=self.call.id,
            kind="ask",
            started_at=self._started_at,
            seconds=self.elapsed,
            status=status,
            text=self.call.question,
            answer=self.answer,
            owner=self.call.owner,
            model=model,
            error=error,
            details=self.details
            | user
            | {"skipped": msgspec.to_builtins(self.skipped), "timings": self.timings()},
            generations=list(self.generations),
            pages=list(self.pages),
        )
