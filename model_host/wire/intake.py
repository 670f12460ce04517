"""Requests in: parses lines, answers what must not wait, and prepares the rest for the loop.

Two threads. The reader parses lines and handles `cancel`, `ping` and `shutdown` at once. The preparer renders,
tokenizes and compiles grammars, and answers `count` and `detokenize`, so that neither waits for a decode step. The loop
takes prepared work with :meth:`Intake.take`: :class:`~model_host.batching.request.SequenceState` objects, or
:class:`~model_host.embedding.queue.Job` objects in an embedding host.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar, cast

from model_host import protocol
from model_host.wire.output import Accepted, Output, Ticket

READ_BYTES = 1 << 16

Work = TypeVar("Work")


class Intake(Generic[Work]):
    """Requests on their way to the loop.

    ``on_cancel`` is called by the reader thread with the id of a request that was just cancelled, or with ``""`` when
    the host is to end.
    """

    def __init__(self, output: Output, *, max_waiting: int, on_cancel: Callable[[str], None]) -> None:
        self.closing: str | None = None  # id of the shutdown request, "" when stdin closed
        self.stats_asked: deque[str] = deque()
        self.forget_asked: deque[protocol.Forget] = deque()
        # Called by the preparer thread when it has work for the loop.
        self.on_ready: Callable[[Work], None] = lambda _: None
        self._output = output
        self._on_cancel = on_cancel
        self._max_waiting = max_waiting
        self._to_prepare: queue.SimpleQueue[Ticket] = queue.SimpleQueue()
        self._ready: deque[Work] = deque()
        self._wake = threading.Condition()
        # When the loop's current turn and the preparer's current ticket began; None while there is none.
        self._turn_began: float | None = None
        self._ticket_began: float | None = None

    # ------------------------------------------------------------------ for the loop

    def take(self, *, wait: bool, seconds: float | None = None) -> list[Work]:
        """Remove and return what is ready. With ``wait``, sleep until there is anything to do, or for ``seconds``."""
        self._turn_began = None
        with self._wake:
            if wait:
                self._wake.wait_for(self._anything, seconds)
            taken = list(self._ready)
            self._ready.clear()
        self._turn_began = time.monotonic()
        return taken

    def ready(self) -> list[Work]:
        """The next result of :meth:`take`, without taking it."""
        with self._wake:
            return list(self._ready)

    def _anything(self) -> bool:
        return bool(self._ready or self.stats_asked or self.forget_asked) or self.closing is not None

    # ------------------------------------------------------------------ threads

    def read_from(self, descriptor: int) -> None:
        """Body of the reader thread: returns at end of file or after ``shutdown``."""
        for line in _lines(descriptor):
            if line is None:
                self._refuse(
                    None, "line_too_long", f"a line may have at most {protocol.MAX_LINE_BYTES} bytes"
                )
            elif line.strip():
                self._receive(line)
            if self.closing is not None:
                return
        self.close()

    def prepare_with(self, prepare: Callable[[Ticket], Work | protocol.Event]) -> None:
        """Body of the preparer thread; never returns. ``prepare`` returns work for the loop, or a terminal event."""
        while True:
            self._ticket_began = None
            ticket = self._to_prepare.get()
            self._ticket_began = time.monotonic()
            try:
                result: Work | protocol.Event = _cancelled(ticket) if ticket.cancelled else prepare(ticket)
            except Exception as error:  # a defect in one request must not end the others
                result = protocol.Failed(
                    ticket.request.id, "internal", f"{type(error).__name__}: {error}"[:500]
                )
            if isinstance(result, protocol.Terminal):
                self._output.finish(ticket.request.id, result)
            else:
                with self._wake:
                    self._ready.append(cast("Work", result))
                    self._wake.notify()
                self.on_ready(cast("Work", result))

    # ------------------------------------------------------------------ one line

    def _receive(self, line: bytes) -> None:
        try:
            request = protocol.decode_request(line)
        except protocol.ProtocolError as error:
            self._refuse(error.request_id, "bad_request", str(error))
            return
        if isinstance(request, Accepted):
            self._accept(request)
            return
        if not self._open(request.id):
            return
        match request:
            case protocol.Cancel():
                self._cancel(request)
            case protocol.GetStats():
                with self._wake:
                    self.stats_asked.append(request.id)
                    self._wake.notify()
            case protocol.Ping():
                self._output.finish(request.id, protocol.Pong(request.id, self._busy_seconds()))
            case protocol.Forget():
                self._output.mark_forgotten(request.owner)
                with self._wake:
                    self.forget_asked.append(request)
                    self._wake.notify()
            case protocol.Shutdown():
                self.close(request.id)

    def _busy_seconds(self) -> float:
        began = [each for each in (self._turn_began, self._ticket_began) if each is not None]
        return round(time.monotonic() - min(began), 3) if began else 0.0

    def _accept(self, request: Accepted) -> None:
        if self._output.open_count >= self._max_waiting:
            self._refuse(
                request.id, "overloaded", f"{self._max_waiting} requests are open already", retriable=True
            )
            return
        ticket = Ticket(request, time.monotonic())
        if self._open(request.id, ticket):
            self._to_prepare.put(ticket)

    def _cancel(self, request: protocol.Cancel) -> None:
        ticket = self._output.ticket(request.target)
        if ticket is not None:
            ticket.cancelled = True
            self._on_cancel(request.target)
        self._output.finish(request.id, protocol.Cancelled(request.id, request.target, ticket is not None))

    def _open(self, request_id: str, ticket: Ticket | None = None) -> bool:
        if self._output.open(request_id, ticket):
            return True
        # Without an id, or it would be taken for the end of the open request.
        self._output.emit(
            protocol.Failed(None, "duplicate_id", f"a request with the id {request_id} is already open")
        )
        return False

    def _refuse(
        self, request_id: str | None, code: protocol.FailureCode, message: str, *, retriable: bool = False
    ) -> None:
        if request_id is not None and not self._output.open(request_id):
            request_id = None  # it belongs to an open request
        self._output.finish(request_id, protocol.Failed(request_id, code, message[:1000], retriable))

    def close(self, request_id: str = "") -> None:
        """End the loop: for a `shutdown` request, at end of input, or on a signal."""
        with self._wake:
            self.closing = request_id
            self._wake.notify()
        self._on_cancel("")


def _cancelled(ticket: Ticket) -> protocol.Event:
    """The end of a request that was cancelled before it was prepared."""
    if not isinstance(ticket.request, protocol.Generate):
        return protocol.Failed(ticket.request.id, "cancelled", "the request was cancelled")
    waited = round(time.monotonic() - ticket.arrived, 6)
    return protocol.Finished(id=ticket.request.id, reason="cancelled", queue_seconds=waited)


def _lines(descriptor: int) -> Iterator[bytes | None]:
    """Lines of a pipe without their newline; None for each one over the limit, which is skipped to its end."""
    buffer = bytearray()
    skipping = False
    while piece := os.read(descriptor, READ_BYTES):
        *ends, rest = piece.split(b"\n")
        for end in ends:
            buffer += end
            yield None if skipping or len(buffer) >= protocol.MAX_LINE_BYTES else bytes(buffer)
            skipping = False
            buffer.clear()
        if not skipping:
            buffer += rest
            skipping = len(buffer) >= protocol.MAX_LINE_BYTES
            if skipping:
                buffer.clear()
    if skipping or buffer:
        yield None if skipping else bytes(buffer)
