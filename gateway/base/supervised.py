"""Tasks that live as long as the server: failures are logged and counted, and the task restarts with backoff."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Literal

import structlog
from msgspec import Struct

from gateway.base.aio import stop
from gateway.base.errors import HearthError

log = structlog.get_logger(__name__)

# Wait before the first restart. It doubles with each further one, up to the task's longest wait, until the task has run
# for that long.
_FIRST_WAIT_SECONDS = 1.0
_LONGEST_WAIT_SECONDS = 60.0

Work = Callable[[], Coroutine[Any, Any, None]]
TaskState = Literal["running", "restarting", "stopped"]


class TaskHealth(Struct, frozen=True):
    """``restarting``: the task has failed and waits for its restart. ``problem`` describes the last failure."""

    name: str
    state: TaskState
    restarts: int
    problem: str | None


class Supervised:
    """One task. An exception, a return, and a cancellation of something that it awaits are failures."""

    def __init__(self, name: str, work: Work, longest_wait: float) -> None:
        self.restarts = 0
        self.problem: str | None = None
        self._name = name
        self._work = work
        self._longest_wait = longest_wait
        self._waiting = False
        self._task = asyncio.create_task(self._run(), name=name)

    @property
    def state(self) -> TaskState:
        if self._task.done():
            return "stopped"
        return "restarting" if self._waiting else "running"

    def health(self) -> TaskHealth:
        return TaskHealth(self._name, self.state, self.restarts, self.problem)

    async def close(self) -> None:
        await stop([self._task])

    async def _run(self) -> None:
        clock = asyncio.get_running_loop().time
        wait = 0.0
        while True:
            started = clock()
            error = await self._failure()
            lasted = clock() - started >= self._longest_wait
            wait = min(_FIRST_WAIT_SECONDS if lasted or not wait else 2 * wait, self._longest_wait)
            self._waiting = True
            await asyncio.sleep(self._report(error, wait))
            self._waiting = False

    async def _failure(self) -> Exception:
        """Run the work until it fails; return the error."""
        try:
            await self._work()
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            if task.cancelling():
                raise
            return RuntimeError("something that it awaited was cancelled")
        except Exception as error:
            return error
        return RuntimeError("it returned")

    def _report(self, error: Exception, wait: float) -> float:
        """Count and log a failure; return the seconds until the restart, at least ``wait``."""
        self.restarts += 1
        what = "a task of the server failed and starts again"
        if isinstance(error, HearthError):
            wait = max(wait, error.retry_after or 0.0)
            self.problem = error.message
            log.warning(what, task=self._name, problem=self.problem, seconds=round(wait, 1))
        else:
            self.problem = f"an internal error ({type(error).__name__}); the server's log has it"
            log.error(what, task=self._name, seconds=round(wait, 1), exc_info=error)
        return wait


class Supervision:
    """The supervised tasks of one server, by name."""

    def __init__(self) -> None:
        self._tasks: dict[str, Supervised] = {}

    def start(self, name: str, work: Work, *, longest_wait: float = _LONGEST_WAIT_SECONDS) -> Supervised:
        """Run ``work`` until the caller closes the task; ``longest_wait`` is in seconds."""
        task = self._tasks[name] = Supervised(name, work, longest_wait)
        return task

    def health(self) -> list[TaskHealth]:
        """By name."""
        return [task.health() for _, task in sorted(self._tasks.items())]
