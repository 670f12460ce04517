"""The open requests of one child; each ends with exactly one outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from gateway.base.errors import HearthError
from model_host.protocol import RequestEvent, Terminal


class OpenRequest:
    """One request between its sending and its terminal event.

    Its queue is unbounded, because a slow reader must not delay the events of other requests. Deltas are small, and
    ``max_tokens`` bounds their number.
    """

    def __init__(self, request_id: str, on_end: Callable[[], None]) -> None:
        self.id = request_id
        self.ended = False  # its terminal event has arrived, or the child is gone
        self.abandoned = False  # its reader has left; only its end is awaited
        self.overdue: asyncio.TimerHandle | None = None  # runs when an abandoned request does not end
        self._on_end = on_end
        self._events: asyncio.Queue[RequestEvent | HearthError] = asyncio.Queue()

    async def next_event(self) -> RequestEvent:
        """The next event. Raises the error that ended the request."""
        event = await self._events.get()
        if isinstance(event, HearthError):
            raise event
        return event

    def push(self, event: RequestEvent | HearthError) -> None:
        if not self.abandoned:
            self._events.put_nowait(event)

    def abandon(self) -> None:
        """Keep the request open, but discard its events, because its reader has left."""
        self.abandoned = True
        self._events = asyncio.Queue()

    def end(self) -> None:
        self.ended = True
        if self.overdue is not None:
            self.overdue.cancel()
        self._on_end()


class OpenRequests:
    """Open requests by wire id."""

    def __init__(self) -> None:
        self._open: dict[str, OpenRequest] = {}
        self._closed: HearthError | None = None

    def open(self, request_id: str, on_end: Callable[[], None]) -> OpenRequest:
        """Register a request before it is sent. Raises the closing error once :meth:`close` was called."""
        if self._closed is not None:
            raise fresh(self._closed)
        request = self._open[request_id] = OpenRequest(request_id, on_end)
        return request

    def get(self, request_id: str) -> OpenRequest | None:
        return self._open.get(request_id)

    def dispatch(self, event: RequestEvent) -> bool:
        """Hand ``event`` to its request; False when no open request has its id."""
        request = self._open.get(event.id or "")
        if request is None:
            return False
        if isinstance(event, Terminal):
            del self._open[request.id]
            request.end()
        request.push(event)
        return True

    def fail(self, request_id: str | None, error: HearthError) -> None:
        """Raise ``error`` in a request's reader; the request stays open until the host ends it."""
        request = self._open.get(request_id or "")
        if request is not None:
            request.push(error)

    def drop(self, request_id: str, error: HearthError) -> None:
        """End a request that the host does not know (any more)."""
        request = self._open.pop(request_id, None)
        if request is not None:
            request.end()
            request.push(error)

    def close(self, error: HearthError) -> None:
        """Reject further requests with ``error``; open ones continue."""
        self._closed = error

    def fail_all(self, error: HearthError) -> None:
        for request_id in list(self._open):
            self.drop(request_id, fresh(error))


def fresh(error: HearthError) -> HearthError:
    """A copy to raise: one exception raised in several tasks would collect the tracebacks of all."""
    return type(error)(
        error.message,
        code=error.code,
        status=error.status,
        retry_after=error.retry_after,
        param=error.param,
        details=dict(error.details),
    )
