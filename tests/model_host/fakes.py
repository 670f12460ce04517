"""Fakes of a KV cache and a sampler, and requests that are sampled by it."""

from __future__ import annotations

import random

from model_host.batching.request import SequenceState
from model_host.protocol import Lane
from model_host.replies.reply import Reply


class FakeMemory:
    """The KV cache as the number of positions in each sequence."""

    def __init__(self) -> None:
        self.lengths: dict[int, int] = {}

    def copy(self, source: int, target: int, end: int) -> None:
        assert self.lengths.get(target, 0) == 0, "copied into a sequence that is not empty"
        assert end <= self.lengths.get(source, 0)
        self.lengths[target] = end

    def trim(self, sequence: int, start: int) -> None:
        self.lengths[sequence] = min(start, self.lengths.get(sequence, 0))

    def length(self, sequence: int) -> int:
        return self.lengths.get(sequence, 0)

    def reusable(self, sequence: int, length: int) -> bool:
        return length <= self.length(sequence)


class CountingSampler:
    """Draws numbers that depend on the sequence only."""

    seed = 0
    closed = False

    def __init__(self, number: int) -> None:
        self._random = random.Random(number)

    def sample(self, row: int, left: int = 0) -> int:
        return self._random.randrange(100)

    def close(self) -> None:
        """Nothing to free."""


def generation(
    name: str,
    lane: Lane,
    tokens: list[int],
    *,
    owner: str = "o",
    arrived: float = 0.0,
    answer: int = 5,
    adapter: str = "",
) -> SequenceState:
    return SequenceState(name, lane, owner, tokens, 0, answer, CountingSampler(1), Reply(), arrived, adapter)
