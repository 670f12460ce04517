"""What is known of batches of one size: the number of threads in use, and trials of other numbers. Pure."""

from __future__ import annotations

import math

CLEARLY = 1.5  # times slower: a trial is lost with one step; or the machine has changed
_BY_ITSELF = 4.0  # times slower: as much as a long context can make of it
# Steps shorter than this are slower right after a change of threads: the first is not counted.
WARM_SECONDS = 0.02
_TRIAL_STEPS = 3
_TRIAL_SECONDS = 0.2  # … or fewer, when they take so long together
_BETTER = 0.97
_FIRST_PATIENCE_SECONDS = 0.2  # of computing until the first trial: a plan may be of a busier day
_PATIENCE_SECONDS = 1.0  # between two trials at least …
_HOME_PATIENCE_SECONDS = 20.0  # where the number should stay, but more threads might be faster after all …
_FIRST_HOME_PATIENCE_SECONDS = 0.5  # … because others were there when it was measured, and have gone
_PATIENCE_FACTOR = 40  # … and so many times what the last one lost: trials cost a fortieth


class SizeState:
    """One size of batch. Numbers of threads are indexes here; costs are seconds a token."""

    def __init__(self, count: int, begin: int) -> None:
        self.begin = begin
        self.current = begin
        self._count = count
        self._home: int | None = None  # where nothing is tried without a reason
        self._recent: float | None = None  # cost lately
        self._usual: float | None = None  # cost since longer
        self._least = math.inf  # of all that was usual
        self._patience = _FIRST_PATIENCE_SECONDS  # of computing until the next trial
        self._slow = False  # batches have become slow, and nothing has been tried since
        self._tried = 0  # numbers that were no better, one after the other
        self._trial: _Trial | None = None

    @property
    def index(self) -> int:
        """Of the number of threads in use."""
        return self.current if self._trial is None else self._trial.index

    @property
    def slow(self) -> bool:
        """Batches have just become slow, and nothing has been tried against it."""
        return self._slow and self._trial is None

    def stay(self, cost: float) -> None:
        """Try nothing else as long as a token costs about so much."""
        self._home, self._usual = self.current, cost
        self._patience = self._patience_at_home(_FIRST_HOME_PATIENCE_SECONDS)

    def move(self, index: int) -> None:
        """Go on with this number: something else has shown that it is better, or was."""
        self.current, self._slow = index, False
        self._recent = self._usual = self._trial = None
        self._least = math.inf
        self._patience = _PATIENCE_SECONDS
        if self._home is not None and index >= self._home:
            self._patience = self._patience_at_home()

    def accept(self) -> None:
        """Batches have become slow although nobody is there: their contexts are longer. So it stays, up to a point."""
        assert self._recent is not None
        if self._recent > _BY_ITSELF * self._least:
            return
        self._usual, self._slow = self._recent, False
        self._patience = self._patience_at_home() if self._home is not None else _PATIENCE_SECONDS

    def choose(self) -> int:
        """The number for the next batch."""
        if self._trial is None and self._patience <= 0.0 and self._recent is not None and self._count > 1:
            self._trial = _Trial(self._next(), self._recent)
        return self.index

    def wait(self) -> None:
        """This is not the moment for the trial that was to begin."""
        self._trial, self._patience = None, _PATIENCE_SECONDS

    def note(self, cost: float, seconds: float) -> None:
        """What the last batch cost, and how long it took."""
        if self._trial is not None:
            self._trial.note(cost, seconds)
            if self._trial.verdict is not None:
                self._end(self._trial)
            return
        self._patience -= seconds
        usual = cost if self._usual is None else self._usual
        if self._recent is None:
            usual = min(usual, cost)  # what is known may be of another size, and of a slower moment
        recent = usual if self._recent is None else self._recent
        self._recent = recent + (cost - recent) / 4
        self._usual = usual + (cost - usual) / 64
        self._least = min(self._least, self._usual)
        if self._recent > CLEARLY * self._usual:  # somebody else has come
            self._patience, self._tried, self._slow = 0.0, 0, True

    def _end(self, trial: _Trial) -> None:
        self._tried += 1
        self._slow = False
        if trial.verdict:
            self.current, self._recent, self._tried = trial.index, trial.mean, 0
        self._usual = self._recent
        self._patience = max(_PATIENCE_SECONDS, _PATIENCE_FACTOR * trial.lost)
        if self._home is not None and self.current >= self._home:
            self._home = self.current
            self._patience = self._patience_at_home()
        self._trial = None

    def _patience_at_home(self, otherwise: float = _HOME_PATIENCE_SECONDS) -> float:
        return math.inf if self._home == self._count - 1 else otherwise

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
        self._seconds = 0.0
        self._warm = False

    @property
    def mean(self) -> float:
        """Of the counted steps."""
        return sum(self._costs) / len(self._costs)

    def note(self, cost: float, seconds: float) -> None:
        """One step."""
        self.lost = max(0.0, self.lost + seconds * (1 - self._against / cost))
        much_slower = cost > 4 * CLEARLY * self._against
        if not self._warm and seconds < WARM_SECONDS and not much_slower:
            self._warm = True
            return
        self._costs.append(cost)
        self._seconds += seconds
        if cost > CLEARLY * self._against:
            self.verdict = False
        elif len(self._costs) == _TRIAL_STEPS or self._seconds >= _TRIAL_SECONDS:
            self.verdict = self.mean < _BETTER * self._against
