"""How many threads compute a batch: what has been fastest lately for batches of its size.

The best number depends on the model, on the size of the batch, and on what else the machine does: beside a busy
program, threads that wait for each other at every step of the graph can be many times slower than one thread alone. So
it is not decided once: now and then another number is tried for a few steps, rarely enough to cost next to nothing.
"""

from __future__ import annotations

from typing import Protocol

from model_host.engine.thread_speeds import Speeds, candidates
from model_host.engine.thread_trials import SizeState

EXACT_SIZES = 8  # batches up to here are judged by themselves, larger ones by powers of two
_LOOK_SECONDS = 0.05  # of computing between two looks at who has gone
_MANY_LOOKS = (
    12  # where a wrong answer costs more than these: who hands us work is busy for some of them only
)


def size_class(tokens: int) -> int:
    """The smallest batch that is judged together with one of ``tokens`` tokens."""
    return tokens if tokens <= EXACT_SIZES else 1 << (tokens.bit_length() - 1)


class Others(Protocol):
    """What is known of the other programs of the machine, see :class:`model_host.engine.contention.CpuContention`."""

    cores: int

    def others(self, looks: int = 4) -> int:
        """Threads of other programs that want a core now; few looks may count passers-by."""
        ...


class ThreadTuner:
    """Begins with the best numbers of ``speeds`` (:func:`~model_host.engine.thread_speeds.measure`), without any
    with all.

    A batch of one token is special: over a long context llama.cpp splits its attention between the threads, and the
    last bits of the result depend on their number. So that the same request gives the same answer, its number is
    the measured one and nothing else is tried, unless such batches are clearly slower than they were, or, rarely, where
    it is not all threads: they may have hindered each other when it was measured.

    For larger batches the measured number stays in the same way where it is all threads: fewer can only be better
    beside somebody else, who shows by making batches slower. A trial costs half a batch, and a batch may take a second.

    When batches of one size have become slow and others want all cores, all sizes take no more than a fair share of
    these, as one batch with too many threads may take seconds. As soon as the others have gone, all begin where they
    did. When nobody else is there, longer contexts make batches slow, and nothing is tried. After a pause
    :meth:`resume` looks how things are.

    Not thread-safe: it belongs to the loop's thread.
    """

    def __init__(self, most: int, speeds: Speeds, company: Others) -> None:
        self._candidates = candidates(most)
        self._company = company
        self._speeds = {
            size: {threads: speed for threads, speed in known.items() if threads in self._candidates}
            for size, known in speeds.items()
        }
        self._plan = {
            size: max(known, key=lambda n: known[n]) for size, known in self._speeds.items() if known
        }
        self._sizes: dict[int, SizeState] = {}
        self._crowded: int | None = None  # the index that sizes do not exceed at first
        self._seen = False  # others wanted all cores: what has been found since holds beside them
        self._unlooked = 0.0  # seconds of computing since the last look at who has gone
        self._used = most  # threads of the last batch

    def choose(self, tokens: int) -> int:
        """Threads for the next batch of ``tokens`` tokens."""
        state = self._size(tokens)
        before, index = state.index, state.choose()
        if index > before and self._company.others() >= self._company.cores:
            state.wait()
            index = before
        self._used = self._candidates[index]
        return self._used

    def note(self, tokens: int, seconds: float) -> None:
        """The batch that was chosen for last took so long."""
        state = self._size(tokens)
        state.note(seconds / tokens, seconds)
        self._unlooked += seconds
        if state.slow and self._fair_share() < state.current:
            others = self._company.others(_MANY_LOOKS)
            if others == 0:
                state.accept()
            elif others >= self._company.cores:
                self._join_crowd(self._fair_share())
        elif self._crowded is not None and self._unlooked >= _LOOK_SECONDS:
            self._unlooked = 0.0
            self._look(self._beside_us())

    def resume(self) -> None:
        """After a pause: see whether others have come, who leave no core, or have gone."""
        others = self._company.others(_MANY_LOOKS if self._crowded is not None else 4)
        self._look(others)
        if others >= self._company.cores and not self._seen:
            self._join_crowd(self._fair_share())

    def chosen(self) -> dict[int, int]:
        """Threads by size, as things stand, for the sizes that have occurred or were given."""
        now = {size: self._candidates[state.current] for size, state in self._sizes.items()}
        return dict(sorted((self._plan | now).items()))

    def _beside_us(self) -> int:
        """Others right after a batch: our threads still spin, and who takes what we say is not there yet."""
        return max(0, self._company.others(looks=1) - (self._used - 1))

    def _fair_share(self) -> int:
        """The index of as many threads as are ours when others want all cores once: half of what we might use."""
        half = max(1, self._candidates[-1] // 2)
        return max(index for index, threads in enumerate(self._candidates) if threads <= half)

    def _look(self, others: int) -> None:
        if others <= self._company.cores - self._candidates[-1]:
            self._seen, self._crowded = False, None
            for state in self._sizes.values():
                if state.current < state.begin:
                    state.move(state.begin)

    def _join_crowd(self, index: int) -> None:
        self._seen, self._crowded = True, index
        for state in self._sizes.values():
            if state.current > index:
                state.move(index)

    def _size(self, tokens: int) -> SizeState:
        size = size_class(tokens)
        state = self._sizes.get(size)
        if state is None:
            known = self._nearest(size)
            begin = len(self._candidates) - 1
            if known is not None:
                begin = self._candidates.index(self._plan[known])
            state = self._sizes[size] = SizeState(len(self._candidates), begin)
            if known is not None and (size == known == 1 or begin == len(self._candidates) - 1):
                state.stay(1 / self._speeds[known][self._candidates[begin]])
            if self._crowded is not None and begin > self._crowded:
                state.move(self._crowded)
        return state

    def _nearest(self, size: int) -> int | None:
        """The size with a plan that is nearest, by ratio."""
        return min(self._plan, key=lambda known: (max(known / size, size / known), known), default=None)
