"""Step sizes that leave few tiles of llama.cpp's attention half empty. Pure.

On a CPU flash attention computes tiles of 64 rows, a row being one token in one head. Each thread gets four parts of
the rows, and a tile that the end of a part or of a head cuts off costs as much as a whole one (ggml's
``ggml_compute_forward_flash_attn_ext_f16``). So with 4 heads and two threads 70 tokens take as many tiles as 128, and
140 as many as 256. The 1B shape prefills 145 tokens/s in steps of 140 tokens and 166 in steps of 256 (two free cores of
an AMD EPYC, 2026-11-21).
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise

TILE_ROWS = 64  # a smaller step is computed row by row
_PARTS_A_THREAD = 4
_GOOD = 0.95  # of the best fill; above it, closeness to the budget counts


@cache
def fitting(budget: int, most: int, heads: int, threads: int) -> int:
    """The size nearest to ``budget``, at most ``most``, whose tiles are about as full as possible.

    It is between a half and one and a half times the budget: the larger sizes often take no more tiles.
    """
    if budget < TILE_ROWS:
        return budget
    sizes = range(max(TILE_ROWS, budget // 2), min(most, budget * 3 // 2) + 1)
    shares = {tokens: filled(tokens, heads, threads) for tokens in sizes}
    best = max(shares.values(), default=0.0)
    good = [tokens for tokens in sizes if shares[tokens] >= _GOOD * best]
    return min(good, key=lambda tokens: abs(tokens - budget), default=budget)


def filled(tokens: int, heads: int, threads: int) -> float:
    """The share of used rows in the tiles of a step of at least :data:`TILE_ROWS` tokens."""
    rows = tokens * heads
    parts = 1 if threads == 1 else _PARTS_A_THREAD * threads
    parts = -(-rows // -(-rows // parts))  # both are rounded up
    part = -(-rows // parts)
    cuts = sorted({*range(0, rows, part), *range(0, rows, tokens), rows})
    tiles: int = sum(-(-(end - begin) // TILE_ROWS) for begin, end in pairwise(cuts))
    return rows / (tiles * TILE_ROWS)
