"""The few likeliest tokens of a large vocabulary, found without sorting all of it.

llama.cpp's samplers begin with a list of all tokens: 3 MB to write and to search for 262,144 of them, at each
token of each sequence. Top-k needs the k best alone, and what is close to the best token is found with two passes over
the logits.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LARGE_VOCABULARY = 16_384  # with fewer tokens the list costs more than it saves (docs/benchmarks.md)
_LONGEST = 1024  # a longer list would save little
_FIRST_DISTANCE = (
    10.0  # between the best logit and the least one that is looked for; found out while sampling
)
_FARTHER, _NEARER = 1.5, 0.9
_TRIES = 3
_ENOUGH = 16  # times as many as wanted: the distance may be smaller


class Shortlist:
    """Finds lists that hold the ``wanted`` likeliest tokens for certain, and not many more."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._distance = _FIRST_DISTANCE

    @staticmethod
    def pays(wanted: int, vocabulary: int) -> bool:
        """Whether finding a list takes less time than to do without."""
        return 0 < wanted <= _LONGEST and vocabulary >= LARGE_VOCABULARY

    def find(self, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.intp] | None:
        """Ids in ascending order; None when logits are not numbers, or so flat that the list would be long.

        Of tokens that are excluded (minus infinity) there are none in the list, even where it has fewer than wanted.
        """
        best = logits.max()
        if not np.isfinite(best):
            return None
        distance = self._distance
        for _ in range(_TRIES):
            ids = np.flatnonzero(logits >= best - distance)
            if len(ids) >= self._wanted:
                self._distance = distance * (_NEARER if len(ids) > _ENOUGH * self._wanted else 1.0)
                return ids
            distance *= _FARTHER
        ids = np.flatnonzero(logits > -np.inf)
        if len(ids) > _ENOUGH * self._wanted:
            self._distance = distance
            return None
        return ids
