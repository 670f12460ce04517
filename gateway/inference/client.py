"""The base of both local hosts: a supervised child, exchanges of messages with it, and its state."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
import psutil

from gateway.base.errors import HearthError, ModelUnavailableError
from gateway.base.structs import view
from gateway.config.settings import ModelSettings
from gateway.inference.interface import HostHealth, ModelInfo
from gateway.inference.process.breaker import Breaker
from gateway.inference.process.failures import RETRY_SECONDS, request_failure
from gateway.inference.process.keepalive import IdleClock, Use
from gateway.inference.process.launch import Launcher
from gateway.inference.process.link import HostLink, OpenRequest, encode
from gateway.inference.process.supervisor import Supervisor
from gateway.inference.process.thread_plans import ThreadPlans
from gateway.models.catalog import ResolvedModel
from model_host.protocol import Count, Detokenize, Embed, Failed, Forget

HostQuery = Count | Detokenize | Forget | Embed
T = TypeVar("T")

_MAX_ID = 128
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9._:-]")


class HostClient:
    """A model host that starts on demand.

    A callable ``model`` is called at each start, so that a model pulled since the last start is used. ``command``
    replaces the host's command line; ``snapshots`` is the folder for KV sequences; ``beside`` returns the models that
    other hosts have loaded; ``thread_plans`` stores measured numbers of threads. An instance belongs to the event loop
    that first uses it.
    """

    def __init__(
        self,
        model: ResolvedModel | Callable[[], ResolvedModel],
        settings: ModelSettings,
        *,
        command: Sequence[str] | None = None,
        breaker: Breaker | None = None,
        snapshots: Path | None = None,
        beside: Callable[[], Sequence[ResolvedModel]] = tuple,
        thread_plans: ThreadPlans | None = None,
    ) -> None:
        self._settings = settings
        self._snapshots = snapshots
        self._thread_plans = thread_plans
        self._idle = IdleClock(settings.idle_seconds)
        self._launcher = Launcher(
            model, settings, command, snapshots=snapshots, beside=beside, thread_plans=thread_plans
        )
        self._supervisor = Supervisor(self._launcher, settings, self._idle, breaker or Breaker())
        self._numbers = itertools.count(1)

    def health(self) -> HostHealth:
        supervisor = self._supervisor
        link, state = supervisor.link, supervisor.state
        stats = link.stats if link is not None else None
        counters = msgspec.structs.asdict(stats) if stats is not None else {}
        counters.pop("id", None)
        threads = counters.pop("thread_plan", None)
        if threads is None and link is not None and state == "ready":
            threads = link.ready.result().thread_plan
        return HostHealth(
            state=state,
            pid=link.process.pid if link is not None else None,
            rss_bytes=_resident_bytes(link.process.pid) if link is not None else None,
            uptime_seconds=time.monotonic() - link.started_at if link is not None else None,
            idle_seconds_left=self._idle.seconds_left if state == "ready" else None,
            open_requests=self._idle.open,
            waiting=stats.waiting if stats is not None else 0,
            running=stats.running if stats is not None else 0,
            restarts=supervisor.restarts,
            problem=supervisor.problem,
            retry_after=supervisor.breaker.retry_after(),
            load_progress=supervisor.load_progress if state == "starting" else None,
            model=model_info(link) if link is not None and state == "ready" else None,
            cell_bytes=link.plan.model.cell_bytes if link is not None else 0,
            cache_reason=link.plan.model.cache_reason if link is not None else None,
            threads=threads or {},
            stats=counters,
        )

    async def check(self) -> None:
        supervisor = self._supervisor
        if (refusal := supervisor.breaker.refusal()) is not None:
            raise refusal
        link = supervisor.link
        if link is None or supervisor.state == "stopping":
            await asyncio.to_thread(self._launcher.check, in_memory=link is not None)
        elif silent := link.heartbeat.silent_seconds:
            raise ModelUnavailableError(
                f"the model host has not answered for {silent:g} s; it is replaced if that continues",
                retry_after=RETRY_SECONDS,
            )

    def fits_in_full(self) -> bool:
        """See :meth:`Launcher.fits_in_full`."""
        return self._launcher.fits_in_full()

    @property
    def loaded(self) -> list[ResolvedModel]:
        """The model that is loaded or being loaded."""
        link = self._supervisor.link
        return [] if link is None else [link.plan.model]

    async def refresh_stats(self) -> None:
        link = self._supervisor.link
        if link is not None and self._supervisor.state == "ready":
            await link.refresh_stats()

    async def warm(self) -> None:
        """Start the host and wait until it is ready; its idle time starts again."""
        with self._idle.begin():
            await self._supervisor.ensure_ready()

    async def unload(self) -> None:
        await self._supervisor.unload()

    async def close(self) -> None:
        """Stop the host now; open requests and all later calls fail."""
        await self._supervisor.close()

    @asynccontextmanager
    async def exchange(
        self, link: HostLink, wire_id: str, line: bytes, use: Use, *, cancellable: bool = True
    ) -> AsyncIterator[OpenRequest]:
        """Send a request, whose events are read in the block. Leaving the block early abandons the request.

        The use lasts until the host ends the request, even an abandoned one.
        """
        request = link.requests.open(wire_id, use.release)
        use.hold()
        try:
            await link.send(line)
            yield request
        finally:
            if not request.ended:
                if cancellable:
                    link.cancel(wire_id)
                link.expect_end(wire_id, self._settings.stop_grace_seconds)

    async def answer(
        self, link: HostLink, message: HostQuery, expected: type[T], use: Use, *, cancellable: bool = True
    ) -> T:
        """Send ``message`` and return its reply. Raises what the host reports, HearthError for another reply."""
        line = encode(message)
        async with self.exchange(link, message.id, line, use, cancellable=cancellable) as request:
            event = await request.next_event()
        if isinstance(event, Failed):
            raise request_failure(event)
        if not isinstance(event, expected):
            raise wrong_reply(event)
        return event

    async def ask(self, message: HostQuery, expected: type[T]) -> T:
        """:meth:`answer` of the ready host, which starts when needed."""
        with self._idle.begin() as use:
            return await self.answer(await self._supervisor.ensure_ready(), message, expected, use)

    def wire_id(self, request_id: str) -> str:
        """A unique ID: the HTTP request's ID and a number."""
        suffix = f":{next(self._numbers)}"
        return _NOT_IN_ID.sub("-", request_id)[: _MAX_ID - len(suffix)] + suffix


def wrong_reply(event: object) -> HearthError:
    return HearthError(f"the model host sent a wrong reply: {event!r:.200}")


def model_info(link: HostLink) -> ModelInfo:
    return view(ModelInfo, link.ready.result(), name=link.plan.model.name)


def _resident_bytes(pid: int) -> int | None:
    try:
        return int(psutil.Process(pid).memory_info().rss)
    except psutil.Error:
        return None
