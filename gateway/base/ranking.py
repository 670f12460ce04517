"""Fusion of rankings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

# The value of the paper. The larger it is, the less the first ranks count.
K = 60
# For searches: the first places of a ranking count clearly more than the following ones.
K_SEARCH = 2


def fuse(rankings: Sequence[Sequence[T]], k: int = K, weights: Sequence[float] = ()) -> list[tuple[T, float]]:
    """Reciprocal rank fusion: items by the sum of weight / (k + rank) over all rankings, best first; ranks start at 1.

    ``weights`` are 1 by default. Only ranks matter, so scores of different kinds (BM25, cosine) need not be comparable.
    The first rank of a repeated item counts; ties keep the order of the rankings. G. Cormack, C. Clarke, S. Büttcher,
    "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods", SIGIR 2009.
    """
    scores: defaultdict[T, float] = defaultdict(float)
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, item in enumerate(dict.fromkeys(ranking), 1):
            scores[item] += weight / (k + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])
