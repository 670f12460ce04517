"""Events out, and the guarantee that each request gets exactly one terminal event."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from model_host import protocol

Accepted = protocol.Generate | protocol.Count | protocol.Detokenize | protocol.Embed


@dataclass(slots=True)
class Ticket:
    """An accepted request that has no terminal event yet."""

    request: Accepted
    arrived: float  # monotonic seconds
    cancelled: bool = False
    forgotten: bool = False  # its owner was erased: see protocol.Forget


class Output:
    """Writes event lines to a descriptor; keeps the table of open requests. Thread-safe."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._write_lock = threading.Lock()
        self._table_lock = threading.Lock()
        self._open: dict[str, Ticket | None] = {}

    @property
    def open_count(self) -> int:
        """Requests without a terminal event."""
        return len(self._open)

    def open(self, request_id: str, ticket: Ticket | None = None) -> bool:
        """Add an id to the table; False if it is in it already."""
        with self._table_lock:
            if request_id in self._open:
                return False
            self._open[request_id] = ticket
            return True

    def ticket(self, request_id: str) -> Ticket | None:
        return self._open.get(request_id)

    def gone(self, request_id: str) -> bool:
        """Whether the request has ended, or is to end."""
        ticket = self._open.get(request_id)
        return ticket is None or ticket.cancelled

    def mark_forgotten(self, owner: str) -> None:
        with self._table_lock:
            for ticket in self._open.values():
                if ticket is not None and getattr(ticket.request, "owner", None) == owner:
                    ticket.forgotten = True

    def finish(self, request_id: str | None, event: protocol.Event) -> None:
        """Send a terminal event unless the request has had one. One over the line limit becomes a failure."""
        if request_id is not None:
            with self._table_lock:
                if request_id not in self._open:
                    return
                del self._open[request_id]
        try:
            line = protocol.encode(event)
        except protocol.ProtocolError as error:
            message = (
                f"the reply is too long ({error}); ask for less at once: send the text or the tokens in parts"
            )
            line = protocol.encode(protocol.Failed(request_id, "reply_too_long", message))
        self.write([line])

    def close(self, shutdown_id: str | None) -> None:
        """End all open requests, the ``shutdown`` request last if there is one."""
        with self._table_lock:
            others = [request_id for request_id in self._open if request_id != shutdown_id]
        for request_id in others:
            self.finish(
                request_id, protocol.Failed(request_id, "shutting_down", "the host is ending", retriable=True)
            )
        self.finish(shutdown_id or None, protocol.Closing(shutdown_id or ""))

    def emit(self, event: protocol.Event) -> None:
        """Send an event that ends no request. Raises ProtocolError if it exceeds the line limit."""
        self.write([protocol.encode(event)])

    def write(self, lines: Iterable[bytes]) -> None:
        """Write whole lines, in one piece if the pipe takes them. Raises BrokenPipeError when nobody reads."""
        data = memoryview(b"".join(lines))
        with self._write_lock:
            while data:
                data = data[os.write(self._descriptor, data) :]
