"""Step sizes, compared with a walk over rows as in llama.cpp's attention."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.batching.tiles import TILE_ROWS, filled, fitting

HEADS = st.integers(1, 16)
THREADS = st.integers(1, 16)


def tiles(tokens: int, heads: int, threads: int) -> int:
    """Walk as ggml_compute_forward_flash_attn_ext_f16 does: four chunks a thread, tiles within a head."""
    rows = tokens * heads
    chunk = -(-rows // (4 * threads))
    chunks = -(-rows // chunk)
    if threads == 1 or chunks < threads:
        chunks = threads
    share = -(-rows // chunks)
    count = 0
    for begin in range(0, rows, share):
        row, end = begin, min(begin + share, rows)
        while row < end:
            row += min(TILE_ROWS, end - row, tokens - row % tokens)
            count += 1
    return count


@given(tokens=st.integers(TILE_ROWS, 700), heads=HEADS, threads=THREADS)
def test_tiles_are_counted_as_llama_cpp_makes_them(tokens: int, heads: int, threads: int) -> None:
    rows = tiles(tokens, heads, threads) * TILE_ROWS
    assert filled(tokens, heads, threads) == pytest.approx(tokens * heads / rows)


@given(budget=st.integers(1, 600), more=st.integers(0, 600), heads=HEADS, threads=THREADS)
def test_a_size_is_near_the_budget_and_its_tiles_are_as_full(
    budget: int, more: int, heads: int, threads: int
) -> None:
    size = fitting(budget, budget + more, heads, threads)
    if budget < TILE_ROWS:
        assert size == budget
        return
    assert budget // 2 <= size <= min(budget + more, budget * 3 // 2)
    assert filled(size, heads, threads) >= 0.95 * filled(budget, heads, threads)


@pytest.mark.parametrize(
    ("heads", "threads", "sizes"),
    [
        (4, 2, {64: 92, 90: 122, 128: 128, 140: 128, 170: 128, 512: 512}),
        (4, 1, {64: 64, 90: 64, 140: 128, 170: 183, 512: 512}),
        (8, 8, {128: 184, 256: 256, 300: 256, 512: 512}),
    ],
)
def test_sizes_of_steps(heads: int, threads: int, sizes: dict[int, int]) -> None:
    for budget, size in sizes.items():
        assert fitting(budget, 512, heads, threads) == size, budget
