"""How fast batches are with each number of threads: measured at a model's first load, and kept by the gateway."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from model_host.engine.thread_trials import CLEARLY, WARM_SECONDS

# Tokens a second by size of batch in tokens and number of threads.
Speeds = dict[int, dict[int, float]]

# Sizes that are measured before anybody asks for something. One token is the last: it takes a while until the system
# has spread new threads over the cores, and until then they hinder each other.
_MEASURED = (8, 64, 1)
_SIZE_SECONDS = 0.2  # for each of them, or one turn
_MOST_TURNS = 20
_MEASURE_SECONDS = 0.5  # after which only one token is measured yet


def candidates(most: int) -> tuple[int, ...]:
    """Numbers of threads worth trying on ``most`` cores: powers of two, and all."""
    return tuple(sorted({most, *(1 << power for power in range(most.bit_length()) if 1 << power < most)}))


def measure(run: Callable[[int, int], None], most: int, limit: int, clock: Callable[[], float]) -> Speeds:
    """Tokens a second by size of batch and number of threads; ``run(tokens, threads)`` computes one batch.

    ``limit`` is the largest batch. The numbers take turns, and the best try of each counts, as other programs only ever
    make one slower. Where fewer threads are clearly slower, still fewer are not measured; nor are larger batches of a
    model that is slow.
    """
    begun = clock()
    found: Speeds = {}
    for size in [size for size in _MEASURED if size <= limit] if most > 1 else []:
        if size > 1 and clock() - begun > _MEASURE_SECONDS:
            continue
        speeds: dict[int, float] = {}
        found[size] = speeds
        until = clock() + _SIZE_SECONDS
        left = list(reversed(candidates(most)))
        for _ in range(_MOST_TURNS):
            for threads in left:
                speed = size / max(1e-9, _seconds(partial(run, size, threads), clock))
                speeds[threads] = max(speeds.get(threads, 0.0), speed)
                if speeds[threads] * CLEARLY < max(speeds.values()):
                    left = left[: left.index(threads)]
                    break
            if clock() > until:
                break
    return found


def _seconds(batch: Callable[[], None], clock: Callable[[], float]) -> float:
    """How long a batch takes; a short one is done again, as the first one after a change is slower."""
    started = clock()
    batch()
    first = clock() - started
    if first > WARM_SECONDS:
        return first
    again = []
    for _ in range(2):
        started = clock()
        batch()
        again.append(clock() - started)
    return min(again)


def parse_speeds(text: str) -> Speeds:
    """Speeds as on the command line: ``SIZE:THREADS:SPEED,…``. Raises ValueError."""
    speeds: Speeds = {}
    for part in filter(None, text.split(",")):
        size, threads, speed = part.split(":")
        speeds.setdefault(int(size), {})[int(threads)] = float(speed)
    if any(size < 1 or not speed > 0 for size, known in speeds.items() for speed in known.values()):
        raise ValueError(f"`{text}` has a size or a speed that is not above zero")
    return speeds
