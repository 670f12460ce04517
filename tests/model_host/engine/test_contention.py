"""Who else computes, read off a made-up ``/proc/stat``."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_host.engine.contention import CpuContention


@pytest.mark.parametrize("looks", [1, 4])
def test_others_at_this_moment(tmp_path: Path, looks: int) -> None:
    stat = tmp_path / "stat"
    texts = {
        "": 0,
        "procs_running": 0,
        "procs_running x": 0,
        "procs_running 1": 0,
        "cpu 1\nprocs_running 5\n": 4,
    }
    for text, others in texts.items():
        stat.write_text(text)
        assert CpuContention(stat).others(looks) == others, text
    assert CpuContention(tmp_path / "nothing").others(looks) == 0


def test_this_machine() -> None:
    company = CpuContention()
    assert company.cores >= 1
    assert 0 <= company.others() < 100_000
