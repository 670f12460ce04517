"""A small run of `tests/end_to_end/fuzz/http.py`: no 500, no hang, no process that ends."""

from __future__ import annotations

from tests.end_to_end.fuzz.http import fuzz


def test_hostile_requests_break_nothing(demo_model: str) -> None:
    assert fuzz(demo_model, range(600), seed=7) == []
