"""A small run of `benchmarks/fuzz/fuzz_http.py`: no 500, no hang, no process that ends."""

from __future__ import annotations

from pathlib import Path

from benchmarks.fuzz.fuzz_http import fuzz


def test_hostile_requests_break_nothing(tmp_path: Path, demo_model: str) -> None:
    assert fuzz(tmp_path / "data", demo_model, range(600), seed=7) == []
