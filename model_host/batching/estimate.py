"""What waiting requests are told: their place, and how long it will take at the speeds of the last minute.

The work of whoever is ahead, in seconds of the machine, is taken to be done evenly: of n requests with W seconds of
work together the k-th ends after about W·k/n. How long an answer gets is unknown; the mean of the last ones stands
for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from model_host import protocol
from model_host.batching import request
from model_host.batching.meter import Meter
from model_host.batching.scheduler import Scheduler

_WEIGHT = 0.1  # of a new answer's length in the mean
_UNKNOWN_LENGTH = 200.0


class WaitEstimator:
    """Knows how long answers are."""

    def __init__(self) -> None:
        self._length = _UNKNOWN_LENGTH

    def ended(self, completion_tokens: int) -> None:
        """A generation ended with so many tokens."""
        self._length += _WEIGHT * (completion_tokens - self._length)

    def waits(
        self,
        running: Sequence[request.SequenceState],
        waiting: Sequence[request.SequenceState],
        prefill_speed: float,
        decode_speed: float,
    ) -> list[float | None]:
        """Seconds until each of ``waiting`` (in the order of the queue) starts, and last of one that comes now.

        Speeds are tokens a second of all requests together. None while a speed is not known.
        """
        if prefill_speed <= 0 or decode_speed <= 0:
            return [None] * (len(waiting) + 1)
        work = sum(self._work(one, prefill_speed, decode_speed) for one in running)
        result: list[float | None] = []
        for place in range(len(waiting) + 1):
            ahead = len(running) + place
            result.append(work * (place + 1) / ahead if ahead else 0.0)
            if place < len(waiting):
                work += self._work(waiting[place], prefill_speed, decode_speed)
        return result

    def _work(self, sequence: request.SequenceState, prefill_speed: float, decode_speed: float) -> float:
        expected = max(self._length, 1.25 * sequence.generated)
        tokens = max(0.0, min(expected, sequence.max_tokens) - sequence.generated)
        return sequence.pending / prefill_speed + tokens / decode_speed


class QueueReporter:
    """Positions and waits of one scheduler's queue."""

    def __init__(self, scheduler: Scheduler, meter: Meter) -> None:
        self._scheduler = scheduler
        self._meter = meter
        self._estimator = WaitEstimator()
        self.ended = self._estimator.ended

    def news(self, now: float) -> list[protocol.Queued]:
        """Positions that changed. Who was preempted has its place again soon, and is not told."""
        queue = [one for one in self._scheduler.queue(now) if one.admitted is None]
        if all(one.position == place for place, one in enumerate(queue, 1)):
            return []
        news = []
        for place, (one, wait) in enumerate(zip(queue, self._waits(queue), strict=False), 1):
            if one.position != place:
                one.position = place
                news.append(protocol.Queued(one.id, place, wait))
        return news

    def refusal(self, request_id: str, now: float) -> protocol.Failed:
        """No further request may wait."""
        wait = self._waits(self._scheduler.queue(now))[-1]
        details: dict[str, int | float | str] = {} if wait is None else {"wait_seconds": wait}
        return protocol.Failed(request_id, "overloaded", "too many requests are waiting", True, details)

    def wait_of_a_new_one(self, now: float) -> float | None:
        """Seconds that a request would wait that comes now; None if unknown."""
        return 0.0 if self._scheduler.has_place else self._waits(self._scheduler.queue(now))[-1]

    def _waits(self, queue: Sequence[request.SequenceState]) -> list[float | None]:
        waits = self._estimator.waits(self._scheduler.running, queue, *self._meter.speeds())
        return [None if wait is None else round(wait, 3) for wait in waits]
