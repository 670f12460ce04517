"""Saved states with several windows: cut to a length, they are what llama.cpp would have written of that length."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.engine.engine import Engine, Span
from model_host.engine.kv_state import KvState
from model_host.snapshots.compression import compress, decompress

WINDOW = 256  # of the tiny model
TOKENS = [5 + n * 7 % 1500 for n in range(620)]


@pytest.fixture
def engine(tiny_model: Path) -> Engine:
    """Sequence 0 has ``TOKENS``, the second half in cells before the first."""
    engine = Engine(
        tiny_model, context=2048, sequences=3, outputs=3, chunk=300, threads=1, progress=lambda _: True
    )
    engine.decode([Span(2, 0, TOKENS[:300], 0)])
    engine.decode([Span(0, 0, TOKENS[:300], 0)])
    engine.trim(2, 0)
    engine.decode([Span(0, 300, TOKENS[300:600], 0)])
    engine.decode([Span(0, 600, TOKENS[600:], 0)])
    return engine


def plain(engine: Engine, end: int) -> bytes:
    saved = engine.save(0, end, [], None)
    assert saved is not None and saved[1] == [(end, end)]
    return bytes(saved[0])


def by_position(state: bytes) -> list[tuple[list[int], list[bytes]]]:
    """The positions of each block, and its tensors with the cells in the order of their positions."""
    parsed = KvState.parse(state)
    assert parsed is not None
    blocks = []
    for block in parsed.blocks:
        order = block.cells["position"].argsort()
        tensors = [data[order].tobytes() for _, data in block.tensors]
        blocks.append((block.cells["position"][order].tolist(), tensors))
    return blocks


def test_a_state_with_stops_is_cut_to_what_a_plain_one_has(engine: Engine) -> None:
    saved = engine.save(0, 620, [600, 300], None)
    assert saved is not None
    state, stretches = saved
    assert stretches == [(300, 300), (600, 620)]
    parsed = KvState.parse(state)
    assert parsed is not None
    for length in (300, 600, 620):
        cut = parsed.until(length, WINDOW)
        assert cut is not None
        (full, window), (full_plain, window_plain) = (
            by_position(cut.packed()),
            by_position(plain(engine, length)),
        )
        assert full == full_plain
        assert window[0][-WINDOW:] == window_plain[0]
        if length == 300:
            assert window == window_plain
    assert [parsed.until(length, WINDOW) for length in (299, 301, 599, 621)] == [None] * 4


def test_an_earlier_state_gives_what_the_cache_lacks(engine: Engine) -> None:
    saved = engine.save(0, 620, [300], None)
    assert saved is not None
    earlier, expected = bytes(saved[0]), by_position(plain(engine, 300))
    assert engine.load(1, earlier, 620)
    assert not engine.reusable(1, 300)
    assert engine.save(1, 300, [], None) is None
    again, alone = engine.save(1, 620, [300], earlier), engine.save(1, 300, [], earlier)
    assert again is not None and again[1] == [(300, 300), (620, 620)]
    assert alone is not None and by_position(bytes(alone[0])) == expected


def test_stops_take_half_of_a_plain_state_at_most(engine: Engine) -> None:
    bytes_of_plain = len(plain(engine, 450))
    saved = engine.save(0, 450, [440, 360, 300], None)
    assert saved is not None and saved[1] == [(300, 450)]
    assert len(compress(saved[0])) <= 1.5 * bytes_of_plain
    far = engine.save(0, 620, [600, 480, 300], None)
    assert far is not None and far[1] == [(480, 620)], "no room for the window of 300"
    assert len(compress(far[0])) <= 1.5 * len(plain(engine, 620))


def test_other_forms_are_no_states(engine: Engine) -> None:
    state = plain(engine, 300)
    assert KvState.parse(state) is not None
    for damaged in (
        state[:-1],
        state + b"\0",
        state[:8],
        b"",
        state[:12] + struct.pack("<I", 9999) + state[16:],
    ):
        assert KvState.parse(damaged) is None


@given(st.lists(st.integers(0, 99), unique=True, min_size=1), st.integers(1, 20), st.booleans())
def test_stretches_have_their_windows(positions: list[int], size: int, transposed: bool) -> None:
    """On states made by hand, with values in rows or in columns."""
    cells = b"".join(struct.pack("<iIi", position, 1, 0) for position in positions)
    keys = struct.pack("<iQ", 1, 2) + bytes(value for position in positions for value in (position, 1))
    values = struct.pack("<iQ", 1, 2) + bytes(value for position in positions for value in (position, 2))
    if transposed:
        values = struct.pack("<iII", 0, 1, 2) + bytes(positions) + bytes(len(positions) * [2])
    block = struct.pack("<II", 1, len(positions)) + cells + struct.pack("<II", transposed, 1) + keys + values
    state = struct.pack("<Ii", 1, 0) + block + block
    parsed = KvState.parse(state)
    assert parsed is not None and parsed.packed() == state
    for length in range(101):
        cut = parsed.until(length, size)
        needed = set(range(max(0, length - size), length))
        assert (cut is not None) == (length > 0 and needed <= set(positions))
        if cut is None:
            continue
        full, window = cut.blocks
        assert full.cells["position"].tolist() == [position for position in positions if position < length]
        assert needed <= cut.window <= set(range(length))
        for block_cut in (full, window):
            keys_cut, values_cut = (data for _, data in block_cut.tensors)
            firsts = values_cut[0, :, 0] if transposed else values_cut[:, 0]
            assert firsts.tolist() == keys_cut[:, 0].tolist() == block_cut.cells["position"].tolist()


@given(st.binary(max_size=2000))
def test_compression_loses_nothing(state: bytes) -> None:
    assert decompress(compress(state)) == state


def test_states_become_smaller(engine: Engine) -> None:
    state = plain(engine, 620)
    assert len(compress(state)) < 0.88 * len(state)
