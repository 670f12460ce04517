"""Thread plans: the fastest number of threads for each batch size, measured when the model is first loaded."""

from __future__ import annotations

from collections.abc import Callable

# Tokens/s by batch size in tokens and number of threads.
Speeds = dict[int, dict[int, float]]

# Threads by batch size in tokens; other sizes use the nearest one.
Plan = dict[int, int]

# One token comes last: until the system has spread new threads over the cores, they hinder each other.
_MEASURED = (8, 64, 1)
_SIZE_SECONDS = 0.1  # for each size, or one turn
_MOST_TURNS = 20
_MEASURE_SECONDS = 0.5  # after which only the size of one token is still measured
_CLEARLY = 1.5  # times slower than the best: smaller numbers of threads are not measured
_WARM_SECONDS = 0.02  # shorter batches are slower right after a change of threads


def candidates(most: int) -> tuple[int, ...]:
    """Numbers of threads worth measuring on ``most`` cores: powers of two, and all."""
    return tuple(sorted({most, *(1 << power for power in range(most.bit_length()) if 1 << power < most)}))


def measure(run: Callable[[int, int], None], most: int, limit: int, clock: Callable[[], float]) -> Speeds:
    """The best speeds that ``run``, given tokens and threads, reaches with batches of at most ``limit`` tokens."""
    found: Speeds = {}
    started = clock()
    for size in _MEASURED:
        if size > limit or (size > 1 and clock() - started > _MEASURE_SECONDS):
            continue
        speeds = found[size] = dict[int, float]()
        until = clock() + _SIZE_SECONDS
        left = list(reversed(candidates(most)))
        for _ in range(_MOST_TURNS):
            for threads in left:
                seconds = _seconds(lambda: run(size, threads), clock)  # noqa: B023 - called at once
                speeds[threads] = max(speeds.get(threads, 0.0), size / seconds)
                if speeds[threads] * _CLEARLY < max(speeds.values()):
                    left = left[: left.index(threads)]
                    break
            if clock() > until:
                break
    return found


def _seconds(batch: Callable[[], None], clock: Callable[[], float]) -> float:
    """Duration of a batch; a short one is run three times, of which the first does not count."""
    taken: list[float] = []
    for _ in range(3):
        started = clock()
        batch()
        taken.append(max(1e-9, clock() - started))
        if taken[0] > _WARM_SECONDS:
            return taken[0]
    return min(taken[1:])


def fastest(speeds: Speeds) -> Plan:
    return {size: max(known, key=known.__getitem__) for size, known in speeds.items()}


def nearest(plan: Plan, tokens: int) -> int:
    """Threads for a batch of ``tokens`` tokens: those of the nearest size, by ratio."""
    return plan[min(plan, key=lambda size: max(size / tokens, tokens / size))]


def parse_plan(text: str) -> Plan:
    """Parse ``SIZE:THREADS,…`` from the command line. Raises ValueError."""
    return {int(size): int(threads) for size, threads in (pair.split(":") for pair in text.split(","))}
