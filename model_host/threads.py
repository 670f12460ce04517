"""How many threads compute a batch: what has been fastest lately for batches of its size.

The best number depends on the model, on the size of the batch, and on what else the machine does: beside a busy
program, threads that wait for each other at every step of the graph can be many times slower than one thread alone. So
it is not decided once: now and then another number is tried for a few steps, rarely enough to cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

EXACT_SIZES = 8  # batches up to here are judged by themselves, larger ones by powers of two
_MEASURED = (1, 8, 64)  # sizes that are measured before anybody asks for something
_MEASURE_SECONDS = 2.0  # for all of it, about
_TRIAL_STEPS = 3
_WARM_SECONDS = (
    0.02  # steps shorter than this are slower right after a change of threads: the first is not counted
)
_CLEARLY = 1.5  # times slower: a trial is lost with one step; or the machine has changed
_BETTER = 0.97
_PATIENCE_SECONDS = 1.0  # of computing between two trials at least …
_PATIENCE_FACTOR = 40  # … and so many times what the last one lost: trials cost a fortieth


def candidates(most: int) -> tuple[int, ...]:
    """Numbers of threads worth trying on ``most`` cores: powers of two, and all."""
    return tuple(sorted({most, *(1 << power for power in range(most.bit_length()) if 1 << power < most)}))


def size_class(tokens: int) -> int:
    """The smallest batch that is judged together with one of ``tokens`` tokens."""
    return tokens if tokens <= EXACT_SIZES else 1 << (tokens.bit_length() - 1)


class ThreadTuner:
    """``plan`` gives numbers of threads by size of batch to begin with; without one it is all of them.

    Not thread-safe: it belongs to the loop's thread.
    """

    def __init__(self, most: int, plan: Mapping[int, int] | None = None) -> None:
        self._candidates = candidates(most)
        self._plan = {size: threads for size, threads in (plan or {}).items() if threads in self._candidates}
        self._sizes: dict[int, _Size] = {}

    def choose(self, tokens: int) -> int:
        """Threads for the next batch of ``tokens`` tokens."""
        return self._candidates[self._size(tokens).choose()]

    def note(self, tokens: int, seconds: float) -> None:
        """The batch that was chosen for last took so long."""
        self._size(tokens).note(seconds / tokens, seconds)

    def chosen(self) -> dict[int, int]:
        """Threads by size, as things stand, for the sizes that have occurred or were given."""
        now = {size: self._candidates[state.current] for size, state in self._sizes.items()}
        return dict(sorted((self._plan | now).items()))

    def _size(self, tokens: int) -> _Size:
        size = size_class(tokens)
        state = self._sizes.get(size)
        if state is None:
            state = self._sizes[size] = _Size(len(self._candidates), self._begin(size))
        return state

    def _begin(self, size: int) -> int:
        """The plan for the nearest size, by ratio."""
        if not self._plan:
            return len(self._candidates) - 1
        nearest = min(self._plan, key=lambda known: (max(known / size, size / known), known))
        return self._candidates.index(self._plan[nearest])


class _Size:
    """What is known of one size of batch. Costs are seconds a token."""

    def __init__(self, count: int, current: int) -> None:
        self.current = current
        self._count = count
        self._recent: float | None = None  # cost lately
        self._usual = 0.0  # cost since longer
        self._patience = _PATIENCE_SECONDS  # of computing until the next trial
        self._upwards = False
        self._trial: _Trial | None = None

    def choose(self) -> int:
        """The index of the number of threads."""
        if self._trial is None and self._patience <= 0.0 and self._recent is not None and self._count > 1:
            self._trial = _Trial(self._neighbour(), self._recent)
        return self.current if self._trial is None else self._trial.index

    def note(self, cost: float, seconds: float) -> None:
        """What the last batch cost, and how long it took."""
        if self._trial is not None:
            self._trial.note(cost, seconds)
            if self._trial.verdict is not None:
                self._end(self._trial)
            return
        self._patience -= seconds
        if self._recent is None:
            self._recent = self._usual = cost
            return
        self._recent += (cost - self._recent) / 4
        self._usual += (cost - self._usual) / 64
        if self._recent > _CLEARLY * self._usual:  # somebody else has come
            self._patience = 0.0

    def _end(self, trial: _Trial) -> None:
        if trial.verdict:
            self.current, self._recent = trial.index, trial.mean
        assert self._recent is not None
        self._usual = self._recent
        self._patience = max(_PATIENCE_SECONDS, _PATIENCE_FACTOR * trial.lost)
        self._trial = None

    def _neighbour(self) -> int:
        """The next number up or down, in turns where there are both."""
        self._upwards = not self._upwards
        if self.current == 0:
            return 1
        if self.current == self._count - 1:
            return self.current - 1
        return self.current + (1 if self._upwards else -1)


class _Trial:
    """A few steps with another number of threads. ``verdict`` is None until it is known."""

    def __init__(self, index: int, cost: float) -> None:
        self.index = index
        self.verdict: bool | None = None
        self.lost = 0.0  # seconds more than without the trial
        self._against = cost
        self._costs: list[float] = []
        self._warm = False

    @property
    def mean(self) -> float:
        """Of the counted steps."""
        return sum(self._costs) / len(self._costs)

    def note(self, cost: float, seconds: float) -> None:
        """One step."""
        self.lost = max(0.0, self.lost + seconds * (1 - self._against / cost))
        much_slower = cost > 4 * _CLEARLY * self._against
        if not self._warm and seconds < _WARM_SECONDS and not much_slower:
            self._warm = True
            return
        self._costs.append(cost)
        if cost > _CLEARLY * self._against:
            self.verdict = False
        elif len(self._costs) == _TRIAL_STEPS:
            self.verdict = self.mean < _BETTER * self._against


def measure(
    run: Callable[[int, int], None], most: int, limit: int, clock: Callable[[], float]
) -> dict[int, dict[int, float]]:
    """Tokens a second by size of batch and number of threads; ``run(tokens, threads)`` computes one batch.

    ``limit`` is the largest batch. The best of several tries counts, as other programs only ever make one slower.
    Sizes and numbers for which there is no time are left out.
    """
    begun = clock()
    found: dict[int, dict[int, float]] = {}
    for size in [size for size in _MEASURED if size <= limit] if most > 1 else []:
        speeds: dict[int, float] = {}
        for threads in reversed(candidates(most)):
            run(size, threads)  # the first one is slower
            for _ in range(_TRIAL_STEPS):
                started = clock()
                run(size, threads)
                speeds[threads] = max(speeds.get(threads, 0.0), size / max(1e-9, clock() - started))
                if clock() - begun > _MEASURE_SECONDS:
                    break
        found[size] = speeds
        if clock() - begun > _MEASURE_SECONDS:
            break
    return found


def best(speeds: Mapping[int, Mapping[int, float]]) -> dict[int, int]:
    """The plan that measured speeds make."""
    return {size: max(known, key=lambda threads: known[threads]) for size, known in speeds.items()}


def parse_plan(text: str) -> dict[int, int]:
    """A plan as on the command line, ``1:2,64:8``. Raises ValueError."""
    pairs = [part.split(":") for part in text.split(",") if part]
    if not all(len(pair) == 2 for pair in pairs):
        raise ValueError(f"`{text}` is no plan of threads: it looks like 1:2,64:8")
    return {int(size): int(threads) for size, threads in pairs}
