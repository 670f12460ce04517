"""Streams between a flow and a client: one task per flow, cancelled when its client leaves."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, Self, TypeVar, cast

import msgspec
import structlog
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import AppStatus
from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.api.http.errors import client_gone, envelope, internal_error
from gateway.base.errors import DeadlineError, HearthError, OverloadedError

T = TypeVar("T")

_BUFFERED_ITEMS = 256  # by which a flow may be ahead of a slow client
_PING_SECONDS = 15
_NEVER_SECONDS = 10**9
_PING = ServerSentEvent(comment="ping", sep="\n")
_SEND_TIMEOUT_SECONDS = 60.0
_HOLD_SECONDS = 5.0  # for which a stream's status line waits, so that an early error is still an HTTP status
_RECHECK_SECONDS = 3.0  # for which an endless stream may outlive its key

# Drain ends the streams with a last event; sse-starlette would cut them off.
AppStatus.enable_automatic_graceful_drain = False


log = structlog.get_logger(__name__)


def sse(data: Any, event: str | None = None) -> bytes:
    """One server-sent event. JSON has no line breaks, so ``data`` is one line."""
    name = f"event: {event}\n".encode() if event else b""
    return name + b"data: " + msgspec.json.encode(data) + b"\n\n"


def ndjson(data: Any) -> bytes:
    """One line of a stream of JSON lines."""
    return msgspec.json.encode(data) + b"\n"


def known_error(error: Exception) -> HearthError:
    """The error for a stream's last event. An unexpected one is logged and replaced."""
    if isinstance(error, HearthError):
        return error
    log.error("unexpected error in a stream", exc_info=error)
    return internal_error()


class Drain:
    """Ends open flows when the server stops, each with an error that its client can read."""

    def __init__(self) -> None:
        self.begun = False  # the server accepts no new connections
        self.stopping = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._endless: set[asyncio.Task[None]] = set()

    def track(self, task: asyncio.Task[None], *, endless: bool = False) -> None:
        """Cancel this task at :meth:`stop`, an ``endless`` one already at :meth:`begin`."""
        for tasks in (self._tasks, self._endless) if endless else (self._tasks,):
            tasks.add(task)
            task.add_done_callback(tasks.discard)

    def begin(self) -> None:
        """The server waits for open flows; cancel those that would never end."""
        self.begun = True
        for task in list(self._endless):
            task.cancel()

    def stop(self) -> None:
        """Cancel every open flow, once; refuse later ones."""
        if self.stopping:
            return
        self.stopping = True
        for task in list(self._tasks):
            task.cancel()

    def refusal(self) -> OverloadedError:
        """The error for the client of a cancelled flow."""
        return OverloadedError(
            "the server is stopping; try again shortly", code="shutting_down", retry_after=5
        )


class _End:
    def __init__(self, error: Exception | None) -> None:
        self.error = error


class Relay(Generic[T]):
    """Runs a flow in a task and iterates over its items. Iterating raises what the flow raised.

    Response generators are cancelled repeatedly during their cleanup; a task is cancelled once and can tell the model
    host to stop. The deadline (seconds) and the server's stop are applied here too. An endless flow has ``recheck``,
    which runs before each item and every few seconds and raises once the caller may no longer listen; the flow ends
    without an error when the server begins to stop.
    """

    def __init__(
        self,
        source: AsyncIterator[T],
        drain: Drain,
        deadline_seconds: float | None = None,
        *,
        recheck: Callable[[], Awaitable[object]] | None = None,
    ) -> None:
        # Flows are async generators, so closing them runs their cleanup.
        self._source = cast("AsyncGenerator[T, None]", source)
        self._drain = drain
        self._deadline = deadline_seconds
        self._recheck = recheck
        self._endless = recheck is not None
        self._queue: asyncio.Queue[T | _End] = asyncio.Queue(_BUFFERED_ITEMS)
        self._ahead: deque[T | _End] = deque()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    async def __aenter__(self) -> Self:
        if self._drain.stopping or (self._endless and self._drain.begun):
            raise self._drain.refusal()
        self._task = asyncio.create_task(self._pump())
        self._task.add_done_callback(self._unstarted)
        self._drain.track(self._task, endless=self._endless)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def _unstarted(self, task: asyncio.Task[None]) -> None:
        """End the queue of a task that was cancelled before its first step and so runs no code."""
        if task.cancelled() and not self._closing:
            self._queue.put_nowait(_End(self._drain.refusal()))

    async def _pump(self) -> None:
        await self._queue.put(_End(await self._run()))

    async def _run(self) -> Exception | None:
        deadline = asyncio.timeout(self._deadline)
        try:
            async with deadline, aclosing(self._source):
                async for item in self._source:
                    await self._queue.put(item)
        except asyncio.CancelledError:
            if self._endless and self._drain.begun and not self._closing:
                return None
            if self._drain.stopping and not self._closing:
                return self._drain.refusal()
            raise
        except TimeoutError as error:
            if deadline.expired():
                return DeadlineError(f"not finished within {self._deadline:g} seconds, and stopped")
            return error
        except Exception as error:
            return error
        return None

    async def hold(self, until: Callable[[T], bool]) -> None:
        """Wait a few seconds for an item that satisfies ``until``. Raises the error of a flow that fails first."""
        item: T | _End | None = None
        # Only the wait is inside: a TimeoutError of the flow is not the end of the wait.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_HOLD_SECONDS):
                while True:
                    item = await self._queue.get()
                    self._ahead.append(item)
                    if isinstance(item, _End) or until(item):
                        break
        if isinstance(item, _End) and item.error is not None:
            raise item.error

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        item = self._ahead.popleft() if self._ahead else await self._next()
        if not isinstance(item, _End):
            return item
        if item.error is not None:
            raise item.error
        raise StopAsyncIteration

    async def _next(self) -> T | _End:
        if self._recheck is None:
            return await self._queue.get()
        while True:
            item: T | _End | None = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RECHECK_SECONDS):
                    item = await self._queue.get()
            await self._recheck()
            if item is not None:
                return item


async def until_disconnect(receive: Receive, work: Coroutine[Any, Any, T]) -> T:
    """Run ``work``, but cancel it and raise :func:`client_gone` when the client leaves.

    The request's body must have been read, so that ``receive`` waits for the disconnect.
    """
    task = asyncio.create_task(work)
    watcher = asyncio.create_task(_disconnect(receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise client_gone()
    finally:
        task.cancel()
        watcher.cancel()
        await asyncio.wait({task, watcher})
        if not task.cancelled():
            task.exception()  # mark it as retrieved: nobody is left to receive it


async def _disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def event_stream(body: AsyncIterator[bytes], ping: ServerSentEvent = _PING) -> ASGIApp:
    """Server-sent events; ``ping`` keeps an idle connection open. TimeoutError cuts off a client that stops reading."""
    return EventSourceResponse(
        body,
        headers={"Cache-Control": "no-cache"},
        sep="\n",
        ping=_PING_SECONDS,
        ping_message_factory=lambda: ping,
        send_timeout=_SEND_TIMEOUT_SECONDS,
    )


def ndjson_stream(body: AsyncIterator[bytes]) -> ASGIApp:
    """JSON lines. The format has no line without meaning, so there is no ping."""
    return EventSourceResponse(
        body,
        headers={"Cache-Control": "no-cache"},
        media_type="application/x-ndjson",
        ping=_NEVER_SECONDS,
        send_timeout=_SEND_TIMEOUT_SECONDS,
    )


async def named_events(
    relay: Relay[T], request_id: str, named: Callable[[T], tuple[str, Any]]
) -> AsyncIterator[bytes]:
    """The items as events of the name and data that ``named`` returns; an error is the last event, ``error``."""
    try:
        async for item in relay:
            name, data = named(item)
            yield sse(data, name)
    except Exception as error:
        yield sse(envelope(known_error(error), request_id), "error")


async def done_of(relay: Relay[T], named: Callable[[T], tuple[str, Any]]) -> Any:
    """The data of the event ``done``. Raises the error of a flow that fails."""
    async with relay:
        async for item in relay:
            name, data = named(item)
            if name == "done":
                return data
    raise AssertionError("a flow ends with its result or an error")


@dataclass(frozen=True)
class StreamReply(Generic[T]):
    """An ASGI reply that streams the items of a relay.

    ``render`` yields encoded items and turns an error into a last one; ``response`` makes the HTTP reply. With ``hold``
    the status line waits for the first item that satisfies it, so that early failures are plain HTTP errors.
    ``during`` is entered before anything is sent and left at the end of the stream.
    """

    relay: Relay[T]
    render: Callable[[Relay[T]], AsyncIterator[bytes]]
    _: KW_ONLY
    hold: Callable[[T], bool] | None = None
    during: AbstractAsyncContextManager[None] = field(default_factory=nullcontext)
    response: Callable[[AsyncIterator[bytes]], ASGIApp] = event_stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self.during, self.relay:
            if self.hold is not None:
                await until_disconnect(receive, self.relay.hold(self.hold))
            await self.response(self.render(self.relay))(scope, receive, send)
