"""The queue of lines to send to a network, in order and not faster than servers tolerate."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

import structlog
from msgspec import Struct

from clients.irc.limits import Backoff, Buckets
from clients.irc.wire import UnsafeLineError

_MOST_LINES = 200
# Between failed sends. A send may fail without ever suspending, when the connection is closed already.
_RETRY_FIRST_SECONDS = 0.05
_RETRY_MOST_SECONDS = 2.0

log = structlog.get_logger(__name__)


class Line(Struct, frozen=True, kw_only=True):
    """One message to one target. It expires at ``until`` on the loop's clock."""

    target: str
    text: str
    until: float


class Outbox:
    """Sends lines one by one with ``send``: ``burst`` at once, then one every ``seconds_per_line``.

    A line whose target ``open_to`` does not let through (connection lost, channel not joined) waits, and others pass
    it. ``send`` returns whether the line has gone out; if not, the outbox backs off and tries again.
    """

    def __init__(
        self,
        send: Callable[[Line], Awaitable[bool]],
        open_to: Callable[[str], bool],
        *,
        burst: int,
        seconds_per_line: float,
    ) -> None:
        self._send = send
        self._open_to = open_to
        self._pace = Buckets(burst, seconds_per_line)
        self._lines: deque[Line] = deque()
        self._changed = asyncio.Event()
        self.dropped = 0

    @property
    def waiting(self) -> int:
        return len(self._lines)

    def put(self, lines: list[Line]) -> None:
        """Queue all lines, or drop all of them if the queue is too full."""
        if len(self._lines) + len(lines) > _MOST_LINES:
            self.dropped += len(lines)
            log.warning("the send queue is full; a reply is dropped", lines=len(self._lines))
            return
        self._lines.extend(lines)
        self.wake()

    def wake(self) -> None:
        """Look again: a line was queued, or a target may have opened."""
        self._changed.set()

    def take_idle(self) -> bool:
        """Return whether an unimportant line may be sent now: nothing waits and the pace has room. Count it as sent."""
        return not self._lines and not self._pace.take("", least=2)

    async def run(self) -> None:
        backoff = Backoff(_RETRY_FIRST_SECONDS, _RETRY_MOST_SECONDS)
        while True:
            self._changed.clear()
            self._expire()
            line = next((each for each in self._lines if self._open_to(each.target)), None)
            if line is None:
                await self._wait_for_change()
                continue
            if wait := self._pace.take(""):
                await asyncio.sleep(wait)
                continue
            try:
                gone = await self._send(line)
            except UnsafeLineError as error:
                log.error("a line was not sent", target=line.target, problem=str(error))
                self.dropped += 1
                self._lines.remove(line)
                continue
            if gone:
                self._lines.remove(line)
                backoff.reset()
            await asyncio.sleep(0 if gone else backoff.next())

    async def _wait_for_change(self) -> None:
        soonest = min((line.until for line in self._lines), default=None)
        try:
            async with asyncio.timeout_at(soonest):
                await self._changed.wait()
        except TimeoutError:
            return

    def _expire(self) -> None:
        now = asyncio.get_running_loop().time()
        for line in [line for line in self._lines if line.until <= now]:
            log.warning("a line could not be sent in time and is dropped", target=line.target)
            self.dropped += 1
            self._lines.remove(line)
