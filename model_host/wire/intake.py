"""Lines in, work out: reads the protocol, prepares prompts, and keeps the table of open requests.

Two threads. The reader parses lines and handles what must not wait (cancel, ping, shutdown). The preparer
renders, tokenizes and compiles grammars, and answers ``count`` and ``detokenize``, so that neither waits for a decode
step. The loop takes what became ready from :meth:`Intake.take`: :class:`~model_host.batching.request.SequenceState`
objects, or :class:`~model_host.embedding.queue.Job` objects in an embedding host.
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

    ``prepare`` turns a ticket into work for the loop, or into the event that ends it. ``on_cancel`` is called, from
    the reader thread, with the id of a request that was just cancelled.
    """

    def __init__(self, output: Output, *, max_waiting: int, on_cancel: Callable[[str], None]) -> None:
        self.closing: str | None = None  # id of the shutdown request, "" when stdin closed
        self.stats_asked: deque[str] = deque()
        self.on_ready: Callable[[Work], None] = lambda _: (
            None
        )  # told, by the preparer thread, of work for the loop
        self.forget_asked: deque[protocol.Forget] = deque()
        self._output = output
        self._on_cancel = on_cancel
        self._max_waiting = max_waiting
        self._to_prepare: queue.SimpleQueue[Ticket] = queue.SimpleQueue()
        self._ready: deque[Work] = deque()
        self._wake = threading.Condition()
        # When the loop's present turn and the preparer's present ticket began; None while there is none.
        self._turn_began: float | None = None
        self._ticket_began: float | None = None

    # ------------------------------------------------------------------ for the batch loop

    def take(self, *, wait: bool, seconds: float | None = None) -> list[Work]:
        """What became ready. With ``wait``, sleeps until there is anything to do, or for ``seconds``."""
        self._turn_began = None
        with self._wake:
            if wait:
                self._wake.wait_for(self._anything, seconds)
            taken = list(self._ready)
            self._ready.clear()
        self._turn_began = time.monotonic()
        return taken

    def ready(self) -> list[Work]:
        """What would be taken now."""
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
                    None, "line_too_long", f"a line may have {protocol.MAX_LINE_BYTES} bytes at most"
                )
            elif line.strip():
                self._receive(line)
            if self.closing is not None:
                return
        self.close("")

    def prepare_with(self, prepare: Callable[[Ticket], Work | protocol.Event]) -> None:
        """Body of the preparer thread; never returns."""
        while True:
            self._ticket_began = None
            ticket = self._to_prepare.get()
            self._ticket_began = time.monotonic()
            try:
                result: Work | protocol.Event = _stopped(ticket) if ticket.cancelled else prepare(ticket)
            except Exception as error:  # whatever goes wrong with one request must not end the others
                result = protocol.Failed(
                    ticket.request.id, "internal", f"{type(error).__name__}: {error}"[:500]
                )
            if isinstance(result, protocol.TERMINAL):
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
        match request:
            case protocol.Cancel():
                self._cancel(request)
            case protocol.GetStats():
                if self._open(request.id, None):
                    with self._wake:
                        self.stats_asked.append(request.id)
                        self._wake.notify()
            case protocol.Ping():
                if self._open(request.id, None):
                    self._output.finish(request.id, protocol.Pong(request.id, self._busy_seconds()))
            case protocol.Forget():
                if self._open(request.id, None):
                    self._output.mark_forgotten(request.owner)
                    with self._wake:
                        self.forget_asked.append(request)
                        self._wake.notify()
            case protocol.Shutdown():
                if self._open(request.id, None):
                    self.close(request.id)
            case protocol.Generate() | protocol.Count() | protocol.Detokenize() | protocol.Embed():
                self._accept(request)

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
        if not self._open(request.id, None):
            return
        ticket = self._output.ticket(request.target)
        if ticket is not None:
            ticket.cancelled = True
            self._on_cancel(request.target)
        self._output.finish(request.id, protocol.Cancelled(request.id, request.target, ticket is not None))

    def _open(self, request_id: str, ticket: Ticket | None) -> bool:
        if self._output.open(request_id, ticket):
            return True
        # The open request keeps its id; this answer must not be taken for its end.
        self._output.emit(
            protocol.Failed(None, "duplicate_id", f"a request with the id {request_id} is already open")
        )
        return False

    def _refuse(
        self, request_id: str | None, code: protocol.FailureCode, message: str, *, retriable: bool = False
    ) -> None:
        if request_id is not None and not self._output.open(request_id, None):
            request_id = None  # it names a request that is open: answer without an id
        self._output.finish(request_id, protocol.Failed(request_id, code, message[:1000], retriable))

    def close(self, request_id: str = "") -> None:
        """End the loop: for a `shutdown` request, at end of input, or on a signal."""
        with self._wake:
            self.closing = request_id
            self._wake.notify()
        self._on_cancel("")


def _stopped(ticket: Ticket) -> protocol.Event:
    """The end of a request that was cancelled before its turn."""
    if not isinstance(ticket.request, protocol.Generate):
        return protocol.Failed(ticket.request.id, "cancelled", "the request was cancelled")
    return protocol.Finished(
        id=ticket.request.id,
        reason="cancelled",
        prompt_tokens=0,
        cached_tokens=0,
        completion_tokens=0,
        queue_seconds=round(time.monotonic() - ticket.arrived, 6),
        prefill_seconds=0.0,
        decode_seconds=0.0,
        seed=0,
    )


def _lines(descriptor: int) -> Iterator[bytes | None]:
    """Lines of a pipe without their end; None for each line over the limit, which is skipped to its end."""
    buffer = bytearray()
    skipping = False
    while piece := os.read(descriptor, READ_BYTES):
        start = 0
        while (end := piece.find(b"\n", start)) >= 0:
            buffer += piece[start:end]
            if skipping or len(buffer) >= protocol.MAX_LINE_BYTES:
                yield None
            else:
                yield bytes(buffer)
            skipping = False
            buffer.clear()
            start = end + 1
        if not skipping:
            buffer += piece[start:]
            if len(buffer) >= protocol.MAX_LINE_BYTES:
                skipping = True
                buffer.clear()
    if skipping:
        yield None
    elif buffer:
        yield bytes(buffer)
