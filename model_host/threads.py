"""How many threads compute a batch: what has been fastest lately for batches of its size.

The best number depends on the model, on the size of the batch, and on what else the machine does: beside a busy
program, threads that wait for each other at every step of the graph can be many times slower than one thread alone. So
it is not decided once: now and then another number is tried for a few steps, rarely enough to cost next to nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

# Tokens a second by size of batch in tokens and number of threads.
Speeds = dict[int, dict[int, float]]

EXACT_SIZES = 8  # batches up to here are judged by themselves, larger ones by powers of two
# Sizes that are measured before anybody asks for something. One token is the last: it takes a while until the system
# has spread new threads over the cores, and until then they hinder each other.
_MEASURED = (8, 64, 1)
_SIZE_SECONDS = 0.2  # for each of them, or one turn
_MOST_TURNS = 20
_MEASURE_SECONDS = 0.5  # after which only one token is measured yet
_TRIAL_STEPS = 3
_WARM_SECONDS = (
    0.02  # steps shorter than this are slower right after a change of threads: the first is not counted
)
_CLEARLY = 1.5  # times slower: a trial is lost with one step; or the machine has changed
_BETTER = 0.97
_FIRST_PATIENCE_SECONDS = 0.2  # of computing until the first trial: a plan may be of a busier day
_PATIENCE_SECONDS = 1.0  # between two trials at least …
_HOME_PATIENCE_SECONDS = 60.0  # where the number should stay, but more threads might be faster after all
_PATIENCE_FACTOR = 40  # … and so many times what the last one lost: trials cost a fortieth


def candidates(most: int) -> tuple[int, ...]:
    """Numbers of threads worth trying on ``most`` cores: powers of two, and all."""
    return tuple(sorted({most, *(1 << power for power in range(most.bit_length()) if 1 << power < most)}))


def size_class(tokens: int) -> int:
    """The smallest batch that is judged together with one of ``tokens`` tokens."""
    return tokens if tokens <= EXACT_SIZES else 1 << (tokens.bit_length() - 1)


class ThreadTuner:
    """``speeds`` as :func:`measure` finds them; the best ones are begun with, without any it is all threads.

    A batch of one token is special: over a long context llama.cpp splits its attention between the threads, and the
    last bits of the result depend on their number. So that the same request gives the same answer, its number is
    the measured one and nothing else is tried, unless such batches are clearly slower than they were, or, rarely, where
    it is not all threads: they may have hindered each other when it was measured.

    Not thread-safe: it belongs to the loop's thread.
    """

    def __init__(self, most: int, speeds: Speeds | None = None) -> None:
        self._candidates = candidates(most)
        self._speeds = {
            size: {threads: speed for threads, speed in known.items() if threads in self._candidates}
            for size, known in (speeds or {}).items()
        }
        self._plan = {
            size: max(known, key=lambda n: known[n]) for size, known in self._speeds.items() if known
        }
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
            begin = self._begin(size)
            state = self._sizes[size] = _Size(len(self._candidates), begin)
            if size == 1 and size in self._plan:
                state.stay(1 / self._speeds[size][self._candidates[begin]])
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
        self._home: int | None = None  # where nothing is tried without a reason
        self._recent: float | None = None  # cost lately
        self._usual: float | None = None  # cost since longer
        self._patience = _FIRST_PATIENCE_SECONDS  # of computing until the next trial
        self._tried = 0  # numbers that were no better, one after the other
        self._trial: _Trial | None = None

    def stay(self, cost: float) -> None:
        """Try nothing else as long as a token costs about so much."""
        self._home, self._usual = self.current, cost
        self._patience = self._patience_at_home()

    def choose(self) -> int:
        """The index of the number of threads."""
        if self._trial is None and self._patience <= 0.0 and self._recent is not None and self._count > 1:
            self._trial = _Trial(self._next(), self._recent)
        return self.current if self._trial is None else self._trial.index

    def note(self, cost: float, seconds: float) -> None:
        """What the last batch cost, and how long it took."""
        if self._trial is not None:
            self._trial.note(cost, seconds)
            if self._trial.verdict is not None:
                self._end(self._trial)
            return
        self._patience -= seconds
        usual = cost if self._usual is None else self._usual
        recent = usual if self._recent is None else self._recent
        self._recent = recent + (cost - recent) / 4
        self._usual = usual + (cost - usual) / 64
        if self._recent > _CLEARLY * self._usual:  # somebody else has come
            self._patience, self._tried = 0.0, 0

    def _end(self, trial: _Trial) -> None:
        self._tried += 1
        if trial.verdict:
            self.current, self._recent, self._tried = trial.index, trial.mean, 0
        self._usual = self._recent
        self._patience = max(_PATIENCE_SECONDS, _PATIENCE_FACTOR * trial.lost)
        if self._home is not None and self.current >= self._home:
            self._home = self.current
            self._patience = self._patience_at_home()
        self._trial = None

    def _patience_at_home(self) -> float:
        return math.inf if self._home == self._count - 1 else _HOME_PATIENCE_SECONDS

    def _next(self) -> int:
        """The number to try: nearer ones first, of two alike the smaller, and all of them in turns."""
        others = [index for index in range(self._count) if index != self.current]
        others.sort(key=lambda index: (abs(index - self.current), index))
        return others[self._tried % len(others)]


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
                if speeds[threads] * _CLEARLY < max(speeds.values()):
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
    if first > _WARM_SECONDS:
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
