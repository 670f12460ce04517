"""Putting rankings together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

T = TypeVar("T", bound=Hashable)

# What the paper found best; how good the first places are matters less the larger it is.
K = 60


def fuse(rankings: Sequence[Sequence[T]], k: int = K, weights: Sequence[float] = ()) -> list[tuple[T, float]]:
    """Reciprocal rank fusion: each ranking gives an item 1 / (k + rank), its first one having rank 1; best first.

    ``weights`` multiply what each ranking gives. Scores of different kinds (BM25, cosine) need not be comparable. An
    item that a ranking has twice counts there by its first place; of equals the one that came first in an earlier
    ranking is first (G. Cormack, C. Clarke, S. Büttcher, "Reciprocal rank fusion outperforms Condorcet and individual
    rank learning methods", SIGIR 2009).
    """
    scores: defaultdict[T, float] = defaultdict(float)
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, item in enumerate(dict.fromkeys(ranking), 1):
            scores[item] += weight / (k + rank)
    return sorted(scores.items(), key=lambda pair: -pair[1])
