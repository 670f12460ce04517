"""Positions and estimated waits of queued requests.

The work ahead of a request, in seconds at the speeds of the last minute, is assumed to be done evenly: of n requests
with W seconds of work together the k-th ends after about W·k/n. The mean length of recent answers stands for the
unknown length of those to come.
"""

from __future__ import annotations

from collections.abc import Sequence

from model_host import protocol
from model_host.batching.meter import Meter
from model_host.batching.request import SequenceState
from model_host.batching.scheduler import Scheduler

_WEIGHT = 0.1  # of a new answer's length in the mean
_UNKNOWN_LENGTH = 200.0


def waits(
    running: Sequence[SequenceState],
    waiting: Sequence[SequenceState],
    length: float,
    prefill_speed: float,
    decode_speed: float,
) -> list[float | None]:
    """Seconds until each of ``waiting``, in queue order, starts, and last until a new request would.

    ``length`` is the mean length of recent answers. Speeds are in tokens/s of all requests together. The result is None
    while a speed is 0, which means unknown.
    """
    if prefill_speed <= 0 or decode_speed <= 0:
        return [None] * (len(waiting) + 1)

    def work(sequence: SequenceState) -> float:
        expected = max(length, 1.25 * sequence.generated)
        tokens = max(0.0, min(expected, sequence.max_tokens) - sequence.generated)
        return sequence.pending / prefill_speed + tokens / decode_speed

    total = sum(map(work, running))
    result: list[float | None] = []
    for place in range(len(waiting) + 1):
        ahead = len(running) + place
        result.append(round(total * (place + 1) / ahead, 3) if ahead else 0.0)
        total += sum(map(work, waiting[place : place + 1]))
    return result


class QueueReporter:
    """Positions and waits in one scheduler's queue."""

    def __init__(self, scheduler: Scheduler, meter: Meter) -> None:
        self._scheduler = scheduler
        self._meter = meter
        self._length = _UNKNOWN_LENGTH

    def ended(self, completion_tokens: int) -> None:
        """Record the length of a finished generation."""
        self._length += _WEIGHT * (completion_tokens - self._length)

    def changes(self, now: float) -> list[protocol.Queued]:
        """Positions that changed. Preempted requests get none: they resume soon."""
        queue = [one for one in self._scheduler.queue(now) if one.admitted is None]
        if all(one.position == place for place, one in enumerate(queue, 1)):
            return []
        changed = []
        for place, (one, wait) in enumerate(zip(queue, self._waits(queue), strict=False), 1):
            if one.position != place:
                one.position = place
                changed.append(protocol.Queued(one.id, place, wait))
        return changed

    def refusal(self, request_id: str, now: float) -> protocol.Failed:
        """The failure of a request that finds the queue full."""
        wait = self._waits(self._scheduler.queue(now))[-1]
        details: dict[str, int | float | str] = {} if wait is None else {"wait_seconds": wait}
        return protocol.Failed(request_id, "overloaded", "too many requests are waiting", True, details)

    def wait_of_next(self, now: float) -> float | None:
        """Estimated wait in seconds of a request that arrives now; None if unknown."""
        return 0.0 if self._scheduler.has_place else self._waits(self._scheduler.queue(now))[-1]

    def _waits(self, queue: Sequence[SequenceState]) -> list[float | None]:
        return waits(self._scheduler.running, queue, self._length, *self._meter.speeds())
