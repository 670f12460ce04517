"""Mutated events from a host: the link goes on, and each request ends once."""

from __future__ import annotations

import pytest

from tests.gateway.inference.process.fuzz_link import run


@pytest.mark.parametrize("lines", [5_000, pytest.param(20_000, marks=pytest.mark.soak)])
async def test_mutated_events(lines: int) -> None:
    counts = await run(lines, seed=lines)
    for kind in ("malformed", "terminal", "other events", "loading", "concluded: crashed"):
        assert counts[kind] > lines / 1000, counts
