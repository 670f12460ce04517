"""The connection to one child process: parse its lines, route its events, send requests; each has one outcome."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable

import structlog

from gateway.base.errors import HearthError, InvalidRequestError, ModelUnavailableError
from gateway.inference.process.failures import (
    LOAD_FAILURES,
    RETRY_SECONDS,
    LifeEnd,
    crashed,
    died,
    fresh,
    load_failure,
)
from gateway.inference.process.heartbeat import Heartbeat
from gateway.inference.process.launch import LaunchPlan
from gateway.inference.process.process import EOF_SECONDS, HostProcess
from model_host import protocol
from model_host.protocol import RequestEvent, Terminal

log = structlog.get_logger(__name__)

# Only the protocol writes to descriptor 1, so a correct host writes no malformed line. A few are tolerated, because a
# restart fails all requests; a host that writes more of them within a minute is unreliable.
GARBAGE_LINES = 16
GARBAGE_SECONDS = 60.0
STATS_SECONDS = 2.0  # a host may reply late, after a long step; then the old counters stay
YIELD_LINES = 64  # lines handled in a row before other tasks run


class HostLink:
    """A child and its open requests.

    ``conclude`` is called with the reason when the child has to end; the supervisor ends it. ``ready`` is done when
    the model is loaded.
    """

    def __init__(
        self,
        process: HostProcess,
        plan: LaunchPlan,
        *,
        on_loading: Callable[[float], None],
        conclude: Callable[[LifeEnd], None],
    ) -> None:
        self.process = process
        self.plan = plan
        self.requests = OpenRequests()
        self.ready: asyncio.Future[protocol.Ready] = asyncio.get_running_loop().create_future()
        self.stats: protocol.Stats | None = None
        self.started_at = time.monotonic()
        self._on_loading = on_loading
        self._conclude = conclude
        self._recent_garbage: deque[float] = deque(maxlen=GARBAGE_LINES)
        self._numbers = itertools.count(1)
        self._control: set[str] = set()  # own control messages without an answer yet
        self._probe: asyncio.Future[None] | None = None
        self.heartbeat = Heartbeat(ask=self._ping, working=process.working)
        self._reader = asyncio.create_task(self._read(), name=f"host-events-{process.pid}")
        self._heartbeat = asyncio.create_task(self._watch(), name=f"host-heartbeat-{process.pid}")
        for task in (self._reader, self._heartbeat):
            task.add_done_callback(self._task_ended)
        process.exited.add_done_callback(self._exited)

    async def send(self, line: bytes) -> None:
        """Write a line and wait until the pipe has room.

        The death of the child is not an error here: it fails all requests.
        """
        try:
            self.process.stdin.write(line)
            await self.process.stdin.drain()
        except ConnectionError:
            pass

    def cancel(self, target: str) -> None:
        """Ask the host to cancel the request ``target``; do not wait for it."""
        self.process.stdin.write(protocol.encode(protocol.Cancel(id=self._control_id(), target=target)))

    def expect_end(self, target: str, grace: float) -> None:
        """Kill the host unless the abandoned request ends within ``grace`` seconds."""
        request = self.requests.get(target)
        if request is not None:
            request.abandon()
            self._give_grace(request, grace)

    def _give_grace(self, request: OpenRequest, grace: float) -> None:
        request.overdue = asyncio.get_running_loop().call_later(grace, self._overdue, request, grace)

    def _overdue(self, request: OpenRequest, grace: float) -> None:
        if self.heartbeat.busy_seconds > grace / 2:
            self._give_grace(request, grace)  # a cancellation takes effect after the current step
        else:
            self._conclude(crashed(f"was ended because a cancelled request did not stop within {grace:g} s"))

    async def refresh_stats(self) -> None:
        """Ask for counters and wait up to :data:`STATS_SECONDS`; concurrent callers share one request."""
        if self._probe is None:
            self._probe = asyncio.get_running_loop().create_future()
            self.process.stdin.write(protocol.encode(protocol.GetStats(id=self._control_id())))
        probe = self._probe
        await asyncio.wait({probe}, timeout=STATS_SECONDS)
        if self._probe is probe:
            self._probe = None  # the reply may be lost: the next caller asks again

    def _ping(self) -> None:
        self.process.stdin.write(protocol.encode(protocol.Ping(id=self._control_id())))

    async def _watch(self) -> None:
        what = await self.heartbeat.watch()
        stopped = self.process.stopped
        what = f"was stopped by another program and {what}" if stopped else what
        self._conclude(crashed(what, self.process.last_words, killed=stopped))

    def farewell(self) -> bytes:
        return protocol.encode(protocol.Shutdown(id=self._control_id()))

    def _control_id(self) -> str:
        request_id = f"gateway:{next(self._numbers)}"
        self._control.add(request_id)
        return request_id

    async def _read(self) -> None:
        """Handle lines until stdout ends or one is too long."""
        for number in itertools.count(1):
            try:
                line = await self.process.stdout.readuntil(b"\n")
            except asyncio.IncompleteReadError as end:
                if end.partial:
                    self._bad_line(end.partial, "the output ended within a line")
                break
            except asyncio.LimitOverrunError:
                # A correct host never sends such a line, and the start of the next one cannot be found cheaply.
                self._conclude(crashed(f"sent a line over {protocol.MAX_LINE_BYTES} bytes"))
                return
            self._handle(line)
            if number % YIELD_LINES == 0:
                await asyncio.sleep(0)
        await asyncio.wait({self.process.exited}, timeout=EOF_SECONDS)
        await self.process.said_all()
        self._gone()

    def _handle(self, line: bytes) -> None:
        try:
            event = protocol.decode_event(line)
        except protocol.ProtocolError as error:
            self._bad_line(line, str(error))
            return
        if not self._route(event):
            self._bad_line(line, "no open request has this id")

    def _route(self, event: protocol.Event) -> bool:
        """Handle an event; return False if it belongs to nothing that is open."""
        if isinstance(event, protocol.Loading):
            self._on_loading(event.progress)
        elif isinstance(event, protocol.Ready):
            self._became_ready(event)
        elif isinstance(event, protocol.Failed) and event.id is None:
            self._failed_itself(event)
        elif isinstance(event, protocol.Closing) and not event.id:
            pass  # another program asked it to end; the end of its output follows
        elif (
            isinstance(event, protocol.Cancelled | protocol.Stats | protocol.Pong | protocol.Closing)
            or event.id in self._control
        ):
            return self._answered(event)
        else:
            return self.requests.dispatch(event)
        return True

    def _became_ready(self, event: protocol.Ready) -> None:
        if event.protocol != protocol.PROTOCOL_VERSION:
            what = f"speaks protocol {event.protocol}, not {protocol.PROTOCOL_VERSION}: reinstall hearth as a whole"
            self._conclude(LifeEnd("refused", ModelUnavailableError(f"the model host {what}")))
        elif not self.ready.done():
            self.ready.set_result(event)

    def _failed_itself(self, event: protocol.Failed) -> None:
        log.error("host_failed", pid=self.process.pid, code=event.code, message=event.message)
        if self.ready.done():
            return  # it does not know which of our lines was wrong; the request's own limits apply
        if event.code in LOAD_FAILURES:
            self._conclude(LifeEnd("refused", load_failure(event)))
        else:
            self._conclude(crashed(f"could not start: {event.message}"))

    def _answered(self, event: protocol.Event) -> bool:
        """Handle the reply to one of our control messages."""
        assert not isinstance(event, protocol.Loading | protocol.Ready)
        if event.id not in self._control:
            return False
        self._control.discard(event.id)
        if isinstance(event, protocol.Pong):
            self.heartbeat.hear(event)
            return True
        if isinstance(event, protocol.Stats):
            self.stats = event
        elif isinstance(event, protocol.Cancelled) and not event.found:
            self.requests.drop(event.target, _lost_event())
        elif isinstance(event, protocol.Failed):
            log.error("host_refused_control", pid=self.process.pid, code=event.code, message=event.message)
        if self._probe is not None and not isinstance(event, protocol.Cancelled):
            self._probe.set_result(None)
            self._probe = None
        return True

    def _bad_line(self, line: bytes, problem: str) -> None:
        now = time.monotonic()
        log.warning("host_bad_line", pid=self.process.pid, problem=problem, line=repr(line[:200]))
        # It may have been the last event of a request, whose reader would wait forever.
        self.requests.fail(protocol.named_id(line), _lost_event())
        full = len(self._recent_garbage) == GARBAGE_LINES
        if full and now - self._recent_garbage[0] <= GARBAGE_SECONDS:
            self._conclude(
                crashed(f"sent more than {GARBAGE_LINES} malformed lines within {GARBAGE_SECONDS:g} s")
            )
        self._recent_garbage.append(now)

    def _exited(self, _: asyncio.Future[int]) -> None:
        # Usually the reader reaches the end of stdout first, but a process outside the group may hold it open.
        asyncio.get_running_loop().call_later(EOF_SECONDS, self._gone)

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("host_link_failed", exc_info=error)
            self._conclude(crashed(f"could not be controlled: {error}"))

    def _gone(self) -> None:
        process = self.process
        if process.exited.done():
            code = process.exited.result()
            self._conclude(died(code, process.last_words, out_of_memory=process.out_of_memory))
        else:
            self._conclude(crashed("closed its output", process.last_words))

    def close(self, error: HearthError) -> None:
        """Reject further requests with ``error`` and end the heartbeat; open requests continue."""
        self.requests.close(error)
        self._heartbeat.cancel()

    def discard(self) -> None:
        """Release all resources without waiting."""
        self._reader.cancel()
        self._heartbeat.cancel()
        if self._probe is not None:
            self._probe.set_result(None)
            self._probe = None
        self.process.discard()


def encode(message: protocol.Request) -> bytes:
    """``message`` as a line. Raises InvalidRequestError if it exceeds the line limit or is not valid Unicode."""
    try:
        return protocol.encode(message)
    except protocol.ProtocolError as error:
        raise InvalidRequestError(f"the request is too large: {error}", code="request_too_large") from None
    except UnicodeEncodeError:
        raise InvalidRequestError("the text has lone surrogates, which are not valid Unicode") from None


def _lost_event() -> HearthError:
    return ModelUnavailableError(
        "the model host sent a malformed reply; try again", retry_after=RETRY_SECONDS
    )


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
