"""The pace of a network: the queue of lines to send, in order and not faster than servers tolerate, and backoff."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable

import structlog
from msgspec import Struct

from clients.irc.wire import Command, UnsafeLineError

_MOST_LINES = 200
# Between failed sends. A send may fail without ever suspending, when the connection is closed already.
_RETRY_FIRST_SECONDS = 0.05
_RETRY_MOST_SECONDS = 2.0

log = structlog.get_logger(__name__)


class Line(Struct, frozen=True, kw_only=True):
    """One message to one target. It expires at ``until`` on the loop's clock."""

    command: Command
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
        self._burst = burst
        self._seconds = seconds_per_line
        self._lines: deque[Line] = deque()
        self._changed = asyncio.Event()
        self._tokens = float(burst)
        self._filled_at = 0.0
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
        self._fill()
        if self._lines or self._tokens < 2:
            return False
        self._tokens -= 1
        return True

    async def run(self) -> None:
        """Send until cancelled."""
        backoff = Backoff(_RETRY_FIRST_SECONDS, _RETRY_MOST_SECONDS)
        while True:
            self._changed.clear()
            self._expire()
            line = next((each for each in self._lines if self._open_to(each.target)), None)
            if line is None:
                await self._wait_for_change()
                continue
            self._fill()
            if self._tokens < 1:
                await asyncio.sleep((1 - self._tokens) * self._seconds)
                continue
            self._tokens -= 1
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

    def _fill(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._seconds == 0:
            self._tokens = float(self._burst)
        else:
            earned = (now - self._filled_at) / self._seconds
            self._tokens = min(float(self._burst), self._tokens + earned)
        self._filled_at = now


class Backoff:
    """Waits that double from ``first`` to at most ``most`` seconds; each is between half of that and all of it.

    The jitter keeps many clients of one server from coming back in the same second.
    """

    def __init__(self, first: float, most: float, rng: random.Random | None = None) -> None:
        self._first = first
        self._most = most
        self._rng = rng or random.Random()
        self._attempts = 0

    def next(self) -> float:
        """Return the seconds to wait now."""
        # The exponent is bounded because a larger power would overflow a float.
        full = min(self._most, self._first * 2.0 ** min(self._attempts, 32))
        self._attempts += 1
        return full * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Begin with the shortest wait again."""
        self._attempts = 0
