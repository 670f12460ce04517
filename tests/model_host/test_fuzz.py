"""A real host answers each mutated line once, and keeps serving."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.model_host.fuzz_protocol import run


@pytest.mark.parametrize(
    ("form", "lines"),
    [
        ("hermes", 2_000),
        ("gemma", 2_000),
        pytest.param("tagged", 10_000, marks=pytest.mark.soak),
    ],
)
def test_mutated_lines(tool_models: dict[str, Path], form: str, lines: int) -> None:
    counts = run(tool_models[form], lines, seed=lines)
    for kind in ("bad_request", "finished", "counted", "detokenized", "cancelled", "forgotten", "stats"):
        assert counts[kind] > lines / 1000, counts
