"""Work on many files in several processes: what parses and resolves holds Python's lock all the time."""

from __future__ import annotations

import copyreg
import gc
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Any, TypeVar

from gateway.base.cores import usable_cores
from gateway.base.errors import HearthError
from gateway.store.db import Database

MOST_PROCESSES = 4  # each has its own cache of what it resolves with
_WORTH_A_PROCESS = 100  # files: one needs half a second to start
_AHEAD = 2  # batches for each process that wait to be done or to be taken
_NICE = 10  # who waits for an answer comes first

_GARBAGE_THRESHOLD = 100_000

Batch = TypeVar("Batch")
Result = TypeVar("Result")
Work = Callable[[Batch], Result]


def processes_for(files: int) -> int:
    """How many processes that many files are worth; 1 is this one."""
    return max(1, min(usable_cores(), MOST_PROCESSES, files // _WORTH_A_PROCESS))


@contextmanager
def in_processes(
    count: int, make: Callable[[], Work[Batch, Result]]
) -> Iterator[Callable[[Iterable[Batch]], Iterator[Result]]]:
    """Run batches of work and return their results in the same order.

    ``make`` makes the work: in this process, or for a ``count`` over 1 in each of so many processes; it, the batches
    and the results must then be picklable. Raises HearthError when a process is killed.
    """
    if count == 1:
        yield partial(map, make())
        return
    spawn = get_context("spawn")  # a fork would copy locks that other threads hold
    pool = ProcessPoolExecutor(count, mp_context=spawn, initializer=partial(_begin, make))
    try:
        yield partial(_in_order, pool, count * _AHEAD)
    except BrokenProcessPool:
        raise HearthError(
            "a process that indexes was killed; what is indexed is kept, and the next run goes on"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _in_order(pool: ProcessPoolExecutor, ahead: int, batches: Iterable[Any]) -> Iterator[Any]:
    waiting: deque[Future[Any]] = deque()
    for batch in batches:
        waiting.append(pool.submit(_do, batch))
        if len(waiting) > ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def seldom_search_for_garbage() -> None:
    """Python's default takes a third of the time of indexing, and there is hardly any garbage in circles."""
    gc.set_threshold(_GARBAGE_THRESHOLD, 20, 50)


# Another process reads the same file.
copyreg.pickle(Database, lambda database: (Database, (database.path,)))
_work: Callable[[Any], Any] | None = None  # of a process of the pool


def _begin(make: Callable[[], Callable[[Any], Any]]) -> None:
    global _work
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the first process ends the others
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.nice(_NICE)
    seldom_search_for_garbage()
    _work = make()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)  # it was killed: nobody takes results


def _do(batch: Any) -> Any:
    assert _work is not None
    return _work(batch)
