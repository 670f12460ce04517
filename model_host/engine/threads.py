"""How many threads compute a batch: the number that was fastest for its size when the model was first loaded."""

from __future__ import annotations

from collections.abc import Callable

# Tokens a second by size of batch in tokens and number of threads.
Speeds = dict[int, dict[int, float]]

# Threads by size of batch in tokens; other sizes take the number of the nearest one.
Plan = dict[int, int]

# One token is the last: it takes a while until the system has spread new threads over the cores, and until then they
# hinder each other.
_MEASURED = (8, 64, 1)
_SIZE_SECONDS = 0.1  # for each of them, or one turn
_MOST_TURNS = 20
_MEASURE_SECONDS = 0.5  # after which only one token is measured yet
_CLEARLY = 1.5  # times slower than the best: fewer threads are not measured
_WARM_SECONDS = 0.02  # batches shorter than this are slower right after a change of threads


def candidates(most: int) -> tuple[int, ...]:
    """Numbers of threads worth measuring on ``most`` cores: powers of two, and all."""
    return tuple(sorted({most, *(1 << power for power in range(most.bit_length()) if 1 << power < most)}))


def measure(run: Callable[[int, int], None], most: int, limit: int, clock: Callable[[], float]) -> Speeds:
    """The best speeds that ``run``, given tokens and threads, reaches with batches of at most ``limit`` tokens."""
    found: Speeds = {}
    begun = clock()
    for size in _MEASURED:
        if size > limit or (size > 1 and clock() - begun > _MEASURE_SECONDS):
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
    """How long a batch takes; a short one is run again."""
    taken: list[float] = []
    for _ in range(3):
        started = clock()
        batch()
        taken.append(max(1e-9, clock() - started))
        if taken[0] > _WARM_SECONDS:
            return taken[0]
    return min(taken[1:])


def fastest(speeds: Speeds) -> Plan:
    """The best number of threads for each measured size."""
    return {size: max(known, key=lambda threads: known[threads]) for size, known in speeds.items()}


def nearest(plan: Plan, tokens: int) -> int:
    """Threads for a batch of ``tokens`` tokens: those of the nearest size, by ratio."""
    return plan[min(plan, key=lambda size: max(size / tokens, tokens / size))]


def parse_plan(text: str) -> Plan:
    """A plan as on the command line: ``SIZE:THREADS,…``. Raises ValueError."""
    return {int(size): int(threads) for size, threads in (pair.split(":") for pair in text.split(","))}
