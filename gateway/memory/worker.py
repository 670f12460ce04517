"""The worker: runs durable jobs, those of a conversation while it has no message to answer.

A job's handler writes its result and the job's end in one transaction. An interrupted job is queued again; a failing
one backs off. A job that was running when the program died runs again after the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import partial

import apsw
import structlog

from gateway.base.aio import finish, stop
from gateway.base.errors import HearthError
from gateway.base.peers import Claim
from gateway.base.supervised import Supervised, Supervision
from gateway.store.db import Database
from gateway.store.memory.jobs import (
    Job,
    JobKind,
    LostJobError,
    lease_job,
    next_job_at,
    put_back_job,
    release_all_jobs,
    renew_jobs,
)

log = structlog.get_logger(__name__)

AT_ONCE = 4
# The worker renews the leases of its jobs. One expires if its gateway died, or could not put the job back.
_LEASE_SECONDS = 15.0
_BEAT_SECONDS = 5.0
# Jobs are due by the clock. A pause counts monotonic time, which stands still while the machine sleeps.
_LOOK_SECONDS = 60.0
_FIRST_RETRY_SECONDS = 30.0
_LAST_RETRY_SECONDS = 3600.0
_INTERRUPT = "interrupt"  # an event

Handler = Callable[[Job], Awaitable[None]]


class JobPostponedError(Exception):
    """The job is to run again after ``seconds``; it has not failed."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"postponed for {seconds:g} s")
        self.seconds = seconds


class Worker:
    """Runs at most ``at_once`` jobs of the kinds in ``handlers`` at once, and one per subject."""

    def __init__(
        self,
        database: Database,
        handlers: Mapping[JobKind, Handler],
        *,
        name: str = "memory-worker",
        at_once: int = AT_ONCE,
    ) -> None:
        self._database = database
        self._peers = database.peers
        self._handlers = handlers
        self._name = name
        self._at_once = at_once
        self._wake = asyncio.Event()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._jobs: dict[str, Job] = {}
        self._beat_at = 0.0  # event loop's clock
        self._started: dict[str, asyncio.Event] = {}
        self._held = self._peers.locks("held")
        self._loop: Supervised | None = None
        self._peers.hear(_INTERRUPT, self._interrupted)

    async def start(self, supervision: Supervision) -> None:
        """Queue the jobs again that an earlier process left running, unless they may be another gateway's; start."""
        if self._peers.look_seconds is None:
            released = await self._database.write(lambda c: release_all_jobs(c, self._handlers.keys()))
            if released:
                log.info("jobs of an earlier run wait again", jobs=released)
        self._loop = supervision.start(self._name, self._run)

    async def close(self) -> None:
        """Interrupt running jobs, which stay queued in the database, and stop."""
        if self._loop is not None:
            await self._loop.close()
        for subject in list(self._running):
            await self._interrupt(subject)

    def wake(self) -> None:
        self._wake.set()

    @property
    def running(self) -> list[str]:
        """Subjects with a running job."""
        return list(self._running)

    async def ended(self, subject: str, seconds: float) -> bool:
        """Wait up to ``seconds`` for the subject's job to end; return whether none runs."""
        task = self._running.get(subject)
        if task is not None:
            await asyncio.wait({task}, timeout=seconds)
        return subject not in self._running

    @contextlib.asynccontextmanager
    async def holding(self, subject: str) -> AsyncIterator[None]:
        """Interrupt the subject's job, and run none while the block runs."""
        try:
            async with self._held.hold(subject):
                await self._interrupt(subject)
                await self._peers.gone(_job(subject), lambda: self._peers.tell(_INTERRUPT, subject))
                yield
        finally:
            self.wake()

    async def _interrupted(self, subject: str, _: bytes) -> None:
        await self._interrupt(subject)

    async def _interrupt(self, subject: str) -> None:
        """Stop the subject's job, once its task has started: before that it could not put the job back."""
        task = self._running.get(subject)
        if task is not None:
            await self._started[subject].wait()
            await stop([task])

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            await self._beat()
            leased = await self._lease() if len(self._running) < self._at_once else None
            if leased is not None:
                self._start(*leased)
                continue
            pause = await self._pause()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    def _start(self, job: Job, claim: Claim) -> None:
        self._started[job.subject] = asyncio.Event()
        self._jobs[job.subject] = job
        task = asyncio.create_task(self._work(job, claim))
        self._running[job.subject] = task
        task.add_done_callback(partial(self._ended, job.subject))

    async def _beat(self) -> None:
        """Renew the leases of running jobs in time."""
        now = asyncio.get_running_loop().time()
        if self._jobs and now >= self._beat_at:
            self._beat_at = now + _BEAT_SECONDS
            jobs, until = list(self._jobs.values()), time.time() + _LEASE_SECONDS
            await self._database.write(lambda c: renew_jobs(c, jobs, until=until))

    @property
    def _busy(self) -> set[str]:
        """Subjects whose jobs may not start: one is running, or they are held."""
        return {*self._running, *self._held.keys}

    async def _lease(self) -> tuple[Job, Claim] | None:
        busy = self._busy

        def lease(connection: apsw.Connection) -> tuple[Job, Claim] | None:
            now, kinds = time.time(), self._handlers.keys()
            return lease_job(
                connection,
                lambda subject: self._peers.take(connection, _job(subject), unless=f"held {subject}"),
                now=now,
                seconds=_LEASE_SECONDS,
                kinds=kinds,
                busy=busy,
            )

        leased = await self._database.write(lease)
        if leased is not None and leased[0].subject in self._held.keys:  # a message arrived meanwhile
            async with self._peers.keeping(leased[1]):
                await self._put_back(leased[0], 0.0, None)
            return None
        return leased

    async def _pause(self) -> float | None:
        """Seconds until the next look at the queue, or a heartbeat; None to wait for :meth:`wake`."""
        pauses = [self._peers.look_seconds, _BEAT_SECONDS if self._jobs else None]
        if len(self._running) < self._at_once:
            busy = self._busy
            due = await self._database.read(lambda c: next_job_at(c, kinds=self._handlers.keys(), busy=busy))
            pauses.append(None if due is None else min(_LOOK_SECONDS, max(1.0, due - time.time())))
        return min((pause for pause in pauses if pause is not None), default=None)

    def _ended(self, subject: str, task: asyncio.Task[None]) -> None:
        self._running.pop(subject, None)
        self._jobs.pop(subject, None)
        self._started.pop(subject, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            # Its row stays leased until the lease expires.
            log.error("a job could not be put back", subject=subject, problem=repr(error))
        self.wake()

    async def _work(self, job: Job, claim: Claim) -> None:
        self._started[job.subject].set()
        async with self._peers.keeping(claim):
            await self._attempt(job)

    async def _attempt(self, job: Job) -> None:
        try:
            await self._handlers[job.kind](job)
        except asyncio.CancelledError:
            await finish(self._put_back(job, 0.0, None))
            raise
        except JobPostponedError as postponed:
            await self._put_back(job, time.time() + postponed.seconds, None)
        except LostJobError:
            log.info("a job was gone when it was done", job=job.kind, subject=job.subject)
        except HearthError as error:
            wait = error.retry_after or min(
                _LAST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2 ** (job.attempts - 1)
            )
            log.warning("a job failed and is tried again", job=job.kind, problem=error.message, seconds=wait)
            await self._put_back(job, time.time() + wait, error.message)
        except Exception as error:
            log.exception("a job failed unexpectedly", job=job.kind, subject=job.subject)
            await self._put_back(job, time.time() + _LAST_RETRY_SECONDS, repr(error))

    async def _put_back(self, job: Job, not_before: float, problem: str | None) -> None:
        with contextlib.suppress(LostJobError):
            await self._database.write(lambda c: put_back_job(c, job, not_before=not_before, problem=problem))


def _job(subject: str) -> str:
    """The name that the gateway holds whose job of this subject runs."""
    return f"job {subject}"
