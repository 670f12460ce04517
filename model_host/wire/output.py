"""Events out, and the one place that guarantees exactly one terminal event per request."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass

from model_host import protocol

Accepted = protocol.Generate | protocol.Count | protocol.Detokenize | protocol.Embed


@dataclass(slots=True)
class Ticket:
    """An accepted ``generate``, ``count``, ``detokenize`` or ``embed`` that has no terminal event yet."""

    request: Accepted
    arrived: float
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

    def open(self, request_id: str, ticket: Ticket | None) -> bool:
        """Take an id into the table; False when it is there already."""
        with self._table_lock:
            if request_id in self._open:
                return False
            self._open[request_id] = ticket
            return True

    def ticket(self, request_id: str) -> Ticket | None:
        """The open generation or count with that id, if there is one."""
        return self._open.get(request_id)

    def mark_forgotten(self, owner: str) -> None:
        """Note for the open requests of an owner that they leave nothing behind."""
        with self._table_lock:
            for ticket in self._open.values():
                if ticket is not None and getattr(ticket.request, "owner", None) == owner:
                    ticket.forgotten = True

    def open_ids(self) -> list[str]:
        """Ids without a terminal event."""
        with self._table_lock:
            return list(self._open)

    def finish(self, request_id: str | None, event: protocol.Event) -> None:
        """Send a terminal event, unless the request already had one. One over the line limit becomes a failure."""
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

    def emit(self, *events: protocol.Event) -> None:
        """Send events as they are. Raises ProtocolError for one over the line limit."""
        self.write(protocol.encode(event) for event in events)

    def write(self, lines: Iterable[bytes]) -> None:
        """Write whole lines, in one piece when the pipe takes them. Raises BrokenPipeError when nobody reads."""
        data = memoryview(b"".join(lines))
        with self._write_lock:
            while data:
                data = data[os.write(self._descriptor, data) :]
