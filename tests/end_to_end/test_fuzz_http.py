"""A small run of `benchmarks/fuzz/fuzz_http.py`: no 500, no hang, no process that ends."""

from __future__ import annotations

from benchmarks.fuzz.fuzz_http import fuzz


def test_hostile_requests_break_nothing(demo_model: str) -> None:
    assert fuzz(demo_model, range(600), seed=7) == []
