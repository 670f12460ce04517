"""Servers with the same model: which one gets a request, and which ones are away."""

from __future__ import annotations

import asyncio
import hashlib
import math
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

import msgspec
import structlog
from msgspec import Struct

from gateway.base.aio import stop
from gateway.base.errors import HearthError, ModelUnavailableError
from gateway.base.structs import view
from gateway.inference.interface import HostHealth, HostState, ReplicaHealth
from gateway.inference.process.breaker import Breaker
from gateway.inference.upstream.connection import (
    MALFORMED,
    RETRY_SECONDS,
    Connection,
    FailedError,
    LostError,
    SilentError,
    malformed,
)

log = structlog.get_logger(__name__)

A = TypeVar("A", bound=Struct)
T = TypeVar("T")

MOST_SENT = 3  # how often a request is sent
_MOST_FAILED = 3  # generations in a row until a server is left out and probed

# A server takes at most this many times its even share of the open requests; the next one in a key's order gets the
# rest (https://arxiv.org/abs/1608.01350).
_BOUND = 1.25
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 10.0  # seconds between probes of a server that is away
_WAIT_SECONDS = 2.0  # for a server that was lost a moment ago
_PROBED_SECONDS = 30.0  # the same while its probe runs: a cluster behind one address replaces what it lost


class Replica(Generic[A]):
    """One server. ``able`` is what its last probe found, None until the first one and while it is away."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.able: A | None = None
        self.open = 0
        self.served = 0
        self.failed_in_row = 0  # generations
        self.problem: str | None = None
        self.breaker = Breaker()
        self.lost = asyncio.Event()
        self.lost_at = -math.inf  # monotonic
        self.probed = False  # a probe runs

    @property
    def url(self) -> str:
        return self.connection.url

    def generated(self) -> None:
        """A reply has come to its end."""
        self.served += 1
        self.failed_in_row = 0
        self.breaker.ended_well()

    def refused(self, error: HearthError) -> None:
        """A generation failed with ``error``: leave a server out that was lost, or that fails again and again."""
        if isinstance(error, FailedError):
            self.failed_in_row += 1
        if isinstance(error, LostError) or self.failed_in_row == _MOST_FAILED:
            self.failed_in_row = 0
            self.failed(error.message)

    def failed(self, problem: str) -> None:
        """Leave the server out until a probe succeeds."""
        if self.able is not None:
            log.warning("upstream_lost", url=self.url, problem=problem)
            self.breaker.crashed(problem, was_ready=True)
            self.lost_at = time.monotonic()
        self.able, self.problem = None, problem
        self.lost.set()

    @property
    def awaited_until(self) -> float:
        """Until when, in monotonic time, a request waits for it."""
        return self.lost_at + (_PROBED_SECONDS if self.probed else _WAIT_SECONDS)

    @contextmanager
    def used(self) -> Iterator[None]:
        self.open += 1
        try:
            yield
        finally:
            self.open -= 1

    @property
    def state(self) -> HostState:
        if self.able is not None:
            return "ready"
        return "starting" if self.problem is None else "broken"


class OnReplicas(Generic[A]):
    """The model of ``_replicas``, which says whether it can be used."""

    _replicas: Replicas[A]

    async def check(self) -> None:
        """Raise ModelUnavailableError if no server is ready, nor probed for the first time."""
        if self._replicas.state == "broken":
            raise self._replicas.unavailable()

    async def warm(self) -> None:
        """Wait for a server that is ready."""
        await self._replicas.pick(None)

    async def close(self) -> None:
        await self._replicas.close()


class Replicas(Generic[A]):
    """The servers at ``urls``. A task for each probes it at the start and whenever it was lost."""

    def __init__(
        self, urls: Sequence[str], key: str, silence: float, probe: Callable[[Connection], Awaitable[A]]
    ) -> None:
        self.all = [Replica[A](Connection(url, key, silence)) for url in urls]
        self._probe = probe
        self._changed = asyncio.Event()  # set and replaced at each change
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to probe, once."""
        if not self._tasks:
            self._tasks = [
                asyncio.create_task(self._watch(each), name=f"upstream {each.url}") for each in self.all
            ]

    async def close(self) -> None:
        await stop(self._tasks)
        for replica in self.all:
            await replica.connection.close()

    @property
    def ready(self) -> list[Replica[A]]:
        return [each for each in self.all if each.able is not None]

    @property
    def state(self) -> HostState:
        states = {each.state for each in self.all}
        return next((state for state in ("ready", "starting") if state in states), "broken")

    def unavailable(self) -> ModelUnavailableError:
        """The error while no server is ready."""
        problems = "; ".join(each.problem or f"{each.url} is being probed" for each in self.all)
        return ModelUnavailableError(f"no upstream server is ready: {problems}", retry_after=RETRY_SECONDS)

    def health(self) -> HostHealth:
        """The servers' health, and what can be said of them together."""
        replicas = [
            view(
                ReplicaHealth,
                each,
                open_requests=each.open,
                failures=each.breaker.crashes,
                retry_after=each.breaker.retry_after(),
                abilities=msgspec.structs.asdict(each.able) if each.able is not None else {},
            )
            for each in self.all
        ]
        problems = [f"{each.url}: {each.problem}" for each in replicas if each.problem]
        return HostHealth(
            state=self.state,
            open_requests=sum(each.open_requests for each in replicas),
            running=sum(each.open_requests for each in replicas),
            restarts=sum(each.failures for each in replicas),
            problem="; ".join(problems) or None,
            replicas=replicas,
        )

    async def pick(self, key: str | None, tried: Collection[Replica[A]] = ()) -> Replica[A]:
        """The least busy server; with a ``key`` always the same one while it is ready and has room.

        Waits while the first probes run, and a moment if all were lost. Those in ``tried`` come last. Raises
        ModelUnavailableError.
        """
        self.start()
        while not self.ready:
            left = max(each.awaited_until for each in self.all) - time.monotonic()
            if self.state == "broken" and left <= 0:
                raise self.unavailable()
            with suppress(TimeoutError):
                async with asyncio.timeout(None if self.state == "starting" else left):
                    await self._changed.wait()
        among = [each for each in self.ready if each not in tried] or self.ready
        if key is None:
            return min(among, key=lambda each: (each.open, each.served))
        most = math.ceil(_BOUND * (sum(each.open for each in among) + 1) / len(among))

        def weight(each: Replica[A]) -> bytes:
            named = f"{key}\0{each.url}".encode("utf-8", "surrogatepass")
            return hashlib.blake2b(named, digest_size=8).digest()

        return max((each for each in among if each.open < most), key=weight)

    def another_try(self, tried: Collection[Replica[A]], error: HearthError) -> bool:
        """Whether a request that failed with ``error`` at the last of ``tried`` is sent once more."""
        if len(tried) >= MOST_SENT:
            return False
        if isinstance(error, LostError) and not isinstance(error, SilentError):
            return True  # even to the same server, once it is back
        return any(each not in tried for each in self.ready)

    async def ask(self, ask: Callable[[Connection, A], Awaitable[T]]) -> tuple[T, A]:
        """Send a short request to the least busy server, and again if that is lost; also return what it can do."""
        tried: list[Replica[A]] = []
        while True:
            replica = await self.pick(None, tried)
            able = replica.able
            assert able is not None, "only ready servers are picked"
            try:
                with replica.used():
                    made = await ask(replica.connection, able)
                replica.served += 1
                return made, able
            except MALFORMED:
                error: HearthError = malformed(replica.url)
            except (LostError, FailedError) as found:
                error = found
            if isinstance(error, LostError):
                replica.failed(error.message)
            tried.append(replica)
            if not self.another_try(tried, error):
                raise error

    async def _watch(self, replica: Replica[A]) -> None:
        """Probe the server, at the start and whenever it was lost.

        A server that answers at once after it was lost keeps its known abilities while the probe runs: a busy server
        that broke one connection must not be left out for the time of about ten short requests.
        """
        pause = _FIRST_PAUSE
        known: A | None = None
        while True:
            try:
                await asyncio.sleep(replica.breaker.retry_after() or 0)
                replica.lost.clear()
                replica.probed = True
                if known is not None:
                    await replica.connection.get("/v1/models")
                    self._ready(replica, known)
                self._ready(replica, known := await self._probed(replica.connection))
            except HearthError as error:
                if error.message != replica.problem:
                    log.warning("upstream_not_ready", url=replica.url, problem=error.message)
                replica.probed = False
                replica.able = known = None
                replica.problem = error.message
                self._change()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            replica.probed = False
            pause = _FIRST_PAUSE
            await replica.lost.wait()

    def _ready(self, replica: Replica[A], able: A) -> None:
        if replica.able is None:
            log.info("upstream_ready", url=replica.url)
        replica.able, replica.problem = able, None
        self._change()

    async def _probed(self, connection: Connection) -> A:
        try:
            return await self._probe(connection)
        except MALFORMED:
            raise malformed(connection.url) from None

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
