"""The supervisor: one task starts the child, watches it, stops it and reaps it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from gateway.base.errors import HearthError, ModelUnavailableError
from gateway.config.settings import ModelSettings
from gateway.inference.interface import HostState, LoadProgress
from gateway.inference.process.breaker import Breaker
from gateway.inference.process.failures import LifeEnd, crashed, fresh, stopped
from gateway.inference.process.keepalive import IdleClock
from gateway.inference.process.launch import Launcher, LaunchPlan
from gateway.inference.process.link import HostLink
from gateway.inference.process.process import HostProcess
from model_host.protocol import MAX_LINE_BYTES

log = structlog.get_logger(__name__)

# Minimum time between starts, because a child that dies at its start must not keep the machine busy.
RESTART_SECONDS = 0.2


class Waiter(asyncio.Queue[LoadProgress | HostLink | HearthError]):
    """A caller that waits for a ready host, from :meth:`Supervisor.join` to :meth:`Supervisor.leave`."""

    def __init__(self) -> None:
        super().__init__()
        self.since = time.monotonic()

    async def next(self) -> LoadProgress | HostLink:
        """Wait for progress, or finally the ready host. Raises the HearthError that ended the start."""
        state = await self.get()
        if isinstance(state, HearthError):
            raise state
        return state


class Supervisor:
    """stopped → starting → ready → stopping → stopped, and ``broken`` while the breaker rejects starts.

    The owner task (:meth:`_own`) exists while there is a child or a waiter. Everything that can end a child calls
    :meth:`_conclude`; the first reason wins, and from then on no caller gets this child. A start continues when its
    waiters leave. When a child dies suddenly, waiters wait for the next one, until the start timeout has passed since
    their call or the breaker opens. Callers hold a use of ``idle`` from before :meth:`join` until their last event, so
    that idle time never counts while a request is in flight.
    """

    def __init__(
        self, launcher: Launcher, settings: ModelSettings, idle: IdleClock, breaker: Breaker
    ) -> None:
        self.idle = idle
        self.breaker = breaker
        self.problem: str | None = None  # why the last start or run failed
        self.restarts = 0  # sudden ends since the gateway started
        self.load_progress = 0.0
        self.link: HostLink | None = None
        self._launcher = launcher
        self._settings = settings
        self._state: HostState = "stopped"
        self._waiters: set[Waiter] = set()
        self._owner: asyncio.Task[None] | None = None
        self._verdict: asyncio.Future[LifeEnd] | None = None
        self._next_start = 0.0  # monotonic time before which no child is started
        self._polite = False  # the ending child was ready, so it is asked to shut down
        self._idle_timer: asyncio.TimerHandle | None = None
        self._over = asyncio.Event()  # set while there is no child
        self._over.set()
        self._closed = False
        idle.on_change = self._idle_changed

    @property
    def state(self) -> HostState:
        if self._state == "stopped" and self.breaker.retry_after() is not None:
            return "broken"
        return self._state

    def join(self) -> Waiter:
        """Ask for a ready host, starting one when there is none. Raises ModelUnavailableError after :meth:`close`."""
        if self._closed:
            raise ModelUnavailableError("hearth is shutting down", retry_after=5.0)
        waiter = Waiter()
        if self._state == "ready" and self.link is not None:
            waiter.put_nowait(self.link)
            return waiter
        self._waiters.add(waiter)
        if self._owner is None or self._owner.done():
            self._owner = asyncio.create_task(self._own(), name="model-host-supervisor")
        elif self._state != "stopped":  # the owner task may not have run yet
            waiter.put_nowait(LoadProgress(self._state, self.load_progress))
        return waiter

    def leave(self, waiter: Waiter) -> None:
        self._waiters.discard(waiter)

    async def ensure_ready(self) -> HostLink:
        """The ready host, started when needed. Raises ModelUnavailableError."""
        waiter = self.join()
        try:
            while not isinstance(state := await waiter.next(), HostLink):
                pass
            return state
        finally:
            self.leave(waiter)

    async def stop(self) -> None:
        """Stop the current child, if any, and wait until it is reaped."""
        self._conclude_current(stopped("asked"))
        await self._over.wait()

    async def unload(self) -> None:
        """Stop the current child once it is unused, and wait until it is reaped."""
        self.idle.expire()
        await self._over.wait()

    async def ended(self) -> None:
        """Wait until a child that is being stopped is gone; return at once if none is being stopped."""
        if self._state == "stopping":
            await self._over.wait()

    async def close(self) -> None:
        """:meth:`stop`, and reject all further starts."""
        self._closed = True
        await self.stop()
        if self._owner is not None:
            await asyncio.wait({self._owner})

    async def _own(self) -> None:
        """Run one child after the other, as long as there are waiters."""
        # This task outlives the request that started it, so its log lines must not carry that request's ID.
        structlog.contextvars.clear_contextvars()
        try:
            while self._waiters and not self._closed:
                await self._live()
        except Exception:
            # A defect. Waiting calls get an error below, and the next call starts the host again.
            log.exception("supervisor_failed")
        finally:
            self._state = "stopped"
            self._over.set()
            self._fail_waiters(stopped("asked").error)

    async def _live(self) -> None:
        """Run one child from start to reaping, or reject the start."""
        if (refusal := self.breaker.refusal()) is not None:
            self._fail_waiters(refusal)
            return
        verdict = self._begin()
        link: HostLink | None = None
        try:
            await asyncio.wait({verdict}, timeout=self._next_start - time.monotonic())
            plan = await asyncio.to_thread(self._launcher.plan)
            if not verdict.done():
                link = await self._spawn(plan, partial(self._conclude, verdict))
                await self._until_verdict(link, verdict)
        except HearthError as error:
            self._conclude(verdict, LifeEnd("refused", error))
        except Exception as error:
            log.exception("host_start_failed")
            self._conclude(verdict, crashed(f"could not be started: {error}"))
        except asyncio.CancelledError:  # the event loop is closing: there is no time for a shutdown
            self._conclude(verdict, stopped("asked"))
            if link is not None:
                link.process.kill()
            raise
        finally:
            if link is not None:
                await self._end(link, verdict)
            self._over.set()

    def _begin(self) -> asyncio.Future[LifeEnd]:
        self._state = "starting"
        self._over.clear()
        self.idle.restart()
        self._verdict = asyncio.get_running_loop().create_future()
        self._report_progress(0.0)
        return self._verdict

    async def _spawn(self, plan: LaunchPlan, conclude: Callable[[LifeEnd], None]) -> HostLink:
        process = await HostProcess.spawn(plan.command, plan.environment, MAX_LINE_BYTES)
        log.info("host_starting", pid=process.pid, model=plan.model.name)
        self.link = HostLink(process, plan, on_loading=self._report_progress, conclude=conclude)
        return self.link

    async def _until_verdict(self, link: HostLink, verdict: asyncio.Future[LifeEnd]) -> None:
        """Wait for ready, the start timeout or the verdict; when ready, serve until the verdict."""
        limit = self._settings.start_timeout_seconds
        race: list[asyncio.Future[Any]] = [link.ready, verdict]
        await asyncio.wait(race, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        if not verdict.done() and link.ready.done():
            self._enter_ready(link)
        elif not verdict.done():
            self._conclude(verdict, crashed(f"was not ready within {limit:g} s", link.process.last_words))
        await asyncio.wait({verdict})

    def _enter_ready(self, link: HostLink) -> None:
        self._state = "ready"
        self.problem = None
        self.idle.ready()
        self._launcher.loaded(link.plan, link.ready.result())
        log.info("host_ready", pid=link.process.pid, seconds=round(time.monotonic() - link.started_at, 3))
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            waiter.put_nowait(link)
        self._idle_changed()

    async def _end(self, link: HostLink, verdict: asyncio.Future[LifeEnd]) -> None:
        ending = verdict.result()
        try:
            if ending.sudden:
                link.requests.fail_all(ending.error)
            farewell = link.farewell() if self._polite else None
            code = await link.process.end(farewell, self._settings.stop_grace_seconds)
            log.info("host_ended", pid=link.process.pid, code=code, why=ending.kind)
        finally:
            # If this task was cancelled, the child is killed here and reaped by its thread.
            link.discard()
            link.requests.fail_all(ending.error)
            self.link = None

    def _conclude_current(self, ending: LifeEnd) -> None:
        if self._verdict is not None:
            self._conclude(self._verdict, ending)

    def _conclude(self, verdict: asyncio.Future[LifeEnd], ending: LifeEnd) -> None:
        """End the child of ``verdict`` because of ``ending``; later reasons are consequences of the first."""
        if verdict.done():
            return
        verdict.set_result(ending)
        self._polite = self._state == "ready" and ending.gentle
        starting, self._state = self._state == "starting", "stopping"
        self._idle_changed()
        self._record(ending, was_ready=not starting)
        if self.link is not None:
            self.link.close(ending.error)
        if starting:
            self._fail_waiters(
                ending.error, waited=self._settings.start_timeout_seconds if ending.sudden else 0.0
            )

    def _record(self, ending: LifeEnd, *, was_ready: bool) -> None:
        message = ending.error.message
        if ending.sudden:
            self.restarts += 1
            if self.link is not None:
                self._next_start = self.link.started_at + RESTART_SECONDS
        if ending.kind == "crashed":
            self.breaker.crashed(message, was_ready=was_ready)
        elif self._polite:
            self.breaker.ended_well()
        if not ending.gentle:
            self.problem = message
            log.error("host_failed", why=ending.kind, problem=message)
        if (
            ending.kind == "refused"
            and self.link is not None
            and isinstance(ending.error, ModelUnavailableError)
        ):
            self._launcher.remember(self.link.plan, ending.error)

    def _fail_waiters(self, error: HearthError, *, waited: float = 0.0) -> None:
        """Raise ``error`` in the waiters that have waited for ``waited`` seconds; the others keep waiting."""
        since = time.monotonic() - waited
        for waiter in {each for each in self._waiters if each.since <= since}:
            self._waiters.discard(waiter)
            waiter.put_nowait(fresh(error))

    def _report_progress(self, fraction: float) -> None:
        if self._state != "starting":
            return
        self.load_progress = fraction
        for waiter in self._waiters:
            waiter.put_nowait(LoadProgress(self._state, fraction))

    def _idle_changed(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        if self._state == "starting" and self.idle.expired:
            self._conclude_current(stopped("asked"))
        elif self._state == "ready" and (left := self.idle.seconds_left) is not None:
            self._idle_timer = asyncio.get_running_loop().call_later(left, self._stop_if_idle)

    def _stop_if_idle(self) -> None:
        left = self.idle.seconds_left
        if self._state == "ready" and left is not None and left <= 0:
            self._conclude_current(stopped("idle"))
        else:
            self._idle_changed()
