"""What happens during one question: events for the client, and everything the request log keeps."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gateway.ask.types import AskCall, AskEvent, Skipped, Stage
from gateway.store.request_log import GenerationRecord, PageRecord, RequestRecord


class Journal:
    """Belongs to one run of the flow and is filled by its steps, concurrent ones included."""

    def __init__(self, call: AskCall) -> None:
        self.call = call
        self.generations: list[GenerationRecord] = []
        self.pages: list[PageRecord] = []
        self.skipped: list[Skipped] = []
        self.details: dict[str, Any] = {}
        self.answer = ""  # as far as it was given out
        self.recorded = False
        self._loaded = -1.0
        self._timings: dict[str, float] = {}
        self._started_at = time.time()
        self._start = time.monotonic()
        self._events: asyncio.Queue[AskEvent | None] = asyncio.Queue()

    def emit(self, event: AskEvent) -> None:
        """Give an event to the reader."""
        self._events.put_nowait(event)

    def stage(self, name: str, **detail: Any) -> None:
        """Tell the reader what is happening."""
        self.emit(Stage(name, detail))

    def loading(self, fraction: float) -> None:
        """Tell the reader how far the model is loaded, whenever that changes by a percent."""
        if round(fraction, 2) != self._loaded:
            self._loaded = round(fraction, 2)
            self.stage("loading", fraction=self._loaded)

    def close(self) -> None:
        """No more events will come."""
        self._events.put_nowait(None)

    async def next(self) -> AskEvent | None:
        """The next event; None at the end."""
        return await self._events.get()

    def skip(self, title: str, reason: str) -> None:
        """Report a page that was found but is not used."""
        self.skipped.append(Skipped(title, reason))

    def note(self, what: str, value: Any) -> None:
        """Add to a list of remarks in the record."""
        self.details.setdefault(what, []).append(value)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Add the time spent in the block to a timing."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._timings[name] = self._timings.get(name, 0.0) + time.monotonic() - start

    def mark(self, name: str) -> None:
        """Set a timing to the time since the question arrived, once."""
        self._timings.setdefault(name, self.elapsed)

    @property
    def elapsed(self) -> float:
        """Seconds since the question arrived."""
        return time.monotonic() - self._start

    def timings(self) -> dict[str, float]:
        """Seconds by stage so far, and ``total``."""
        return {
            name: round(seconds, 4) for name, seconds in (*self._timings.items(), ("total", self.elapsed))
        }

    def record(self, model: str, status: int, error: str | None) -> RequestRecord:
        """The record of this question as it stands."""
        skipped = [{"title": each.title, "reason": each.reason} for each in self.skipped]
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
            details=self.details | user | {"skipped": skipped, "timings": self.timings()},
            generations=list(self.generations),
            pages=list(self.pages),
        )
