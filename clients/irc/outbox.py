"""The queue of lines to send to a network, in order and not faster than servers tolerate; limits over time."""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog
from msgspec import Struct

from clients.irc.protocol.wire import UnsafeLineError

_MOST_LINES = 200
# Between failed sends. A send may fail without ever suspending, when the connection is closed already.
_RETRY_FIRST_SECONDS = 0.05
_RETRY_MOST_SECONDS = 2.0

log = structlog.get_logger(__name__)

_MAX_BUCKETS = 4096

K = TypeVar("K")
V = TypeVar("V")


class LatestDict(OrderedDict[K, V]):
    """Keeps the ``limit`` entries that were set last."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._limit:
            self.popitem(last=False)


class Buckets:
    """Token buckets by name: ``burst`` at once, then one every ``seconds``; 0 is no limit. ``clock`` is in seconds."""

    def __init__(self, burst: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._burst = float(burst)
        self._seconds = seconds
        self._clock = clock
        # Tokens, and when they were counted. A bucket that is evicted has usually been refilled by then.
        self._buckets: LatestDict[str, tuple[float, float]] = LatestDict(_MAX_BUCKETS)

    def take(self, name: str, least: int = 1) -> float:
        """Take a token if there are ``least``, and return 0; otherwise return the seconds until there are."""
        tokens = self._tokens(name)
        taken = tokens >= least
        self._buckets[name] = (tokens - taken, self._clock())
        return 0.0 if taken else (least - tokens) * self._seconds

    def rename(self, old: str, new: str) -> None:
        """Carry what ``old`` has used up over to ``new``; the emptier bucket counts."""
        if old in self._buckets:
            self._buckets[new] = (min(self._tokens(old), self._tokens(new)), self._clock())

    def _tokens(self, name: str) -> float:
        if name not in self._buckets or not self._seconds:
            return self._burst
        tokens, counted = self._buckets[name]
        return min(self._burst, tokens + (self._clock() - counted) / self._seconds)


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
        # The exponent is bounded because a larger power would overflow a float.
        full = min(self._most, self._first * 2.0 ** min(self._attempts, 32))
        self._attempts += 1
        return full * self._rng.uniform(0.5, 1.0)

    def reset(self) -> None:
        """Begin with the shortest wait again."""
        self._attempts = 0


class Line(Struct, frozen=True, kw_only=True):
    """One message to one target. It expires at ``until`` on the loop's clock."""

    target: str
    text: str
    until: float


class Outbox:
    """Sends lines one by one with ``send``: ``burst`` at once, then one every ``seconds_per_line``.

    A line whose target ``open_to`` rejects (connection lost, channel not joined) waits, and others pass
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
