"""CPU contention, read from a fake ``/proc/stat``."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from model_host.engine.cpu_contention import CpuContention

CORES = sorted(os.sched_getaffinity(0))
SECONDS = 1000.0  # between two looks; the CPU time of this process is negligible beside it


class Machine:
    """A clock, and cores that idle as the test says."""

    def __init__(self, folder: Path) -> None:
        self.stat = folder / "stat"
        self._now = 0.0
        self._ticks = 1.0
        self.passes(0, idle=0)

    def clock(self) -> float:
        return self._now

    def passes(self, seconds: float, *, idle: float, elsewhere: float = 0.0) -> None:
        """Pass time, in which each core of this process idles ``idle`` seconds, and a foreign core ``elsewhere``."""
        self._now += seconds
        self._ticks += idle * os.sysconf("SC_CLK_TCK")
        rows = [f"cpu{core} 1 2 3 {self._ticks:.0f} 5 6 7 8 9 10" for core in CORES]
        foreign = f"cpu{CORES[-1] + 1} 0 0 0 {elsewhere * os.sysconf('SC_CLK_TCK'):.0f} 0 0"
        self.stat.write_text("\n".join(["cpu  9 9 9 9 9 9 9 9 9 9", *rows, foreign, "intr 9 9", "btime 9"]))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def contention(machine: Machine) -> CpuContention:
    return CpuContention(len(CORES), machine.stat, machine.clock)


def test_it_is_there_while_half_a_core_is_missing(machine: Machine, contention: CpuContention) -> None:
    assert not contention.present
    for missing, present in ((0.0, False), (0.6, True), (0.9, True), (0.4, False), (1.0, True), (0.0, False)):
        machine.passes(SECONDS, idle=SECONDS * (1 - missing / len(CORES)))
        assert contention.look() is present, missing
        assert contention.present is present


def test_a_moment_is_too_short_to_tell(machine: Machine, contention: CpuContention) -> None:
    for _ in range(2):
        machine.passes(0.06, idle=0)
        seen = contention.look()
    assert seen, "both moments together are long enough"


def test_after_a_pause_a_batch_does_not_start_with_what_was_before(
    machine: Machine, contention: CpuContention
) -> None:
    def batch(idle: float) -> int:
        """Threads of a batch after a second that others used, if the cores idle ``idle`` of each second now."""
        machine.passes(SECONDS, idle=0)
        assert contention.look()
        return contention.threads_for_batch(lambda seconds: machine.passes(seconds, idle=idle * seconds))

    assert batch(idle=1) == len(CORES)
    assert batch(idle=0) == max(1, len(CORES) // 2)
    contention.batch_ended()
    assert batch(idle=1) == len(CORES), "a batch ended a second ago"
    machine.passes(0.2, idle=0)
    contention.look()
    contention.batch_ended()
    assert contention.threads_for_batch(pytest.fail) == max(1, len(CORES) // 2), "there was no pause"


@pytest.mark.parametrize(
    ("idle", "seconds", "present"), [((1, 0), 0.02, False), ((0.5, 1.3), 0.05, False), ((0, 0.2), 0.05, True)]
)
def test_after_a_pause_idle_cores_are_told_early_and_contention_later(
    machine: Machine, contention: CpuContention, idle: tuple[float, float], seconds: float, present: bool
) -> None:
    """In ``idle`` cores' parts of the first and the second stretch of the look anew."""
    machine.passes(SECONDS, idle=0)
    assert contention.look()
    shares, slept = iter(idle), []

    def sleep(length: float) -> None:
        slept.append(length)
        machine.passes(length, idle=next(shares) * length)

    contention.threads_for_batch(sleep)
    assert sum(slept) == pytest.approx(seconds)
    assert contention.present is present


def test_cores_that_this_process_may_not_use_do_not_count(
    machine: Machine, contention: CpuContention
) -> None:
    machine.passes(SECONDS, idle=0, elsewhere=SECONDS)
    assert contention.look()


def test_its_own_threads_are_no_contention(machine: Machine) -> None:
    machine.passes(SECONDS, idle=SECONDS)
    contention = CpuContention(1, machine.stat, time.process_time)
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass
    assert not contention.look()


@pytest.mark.parametrize(
    "text",
    ["", "cpu0", "cpu0 1 2 3 x 5", "".join(f"cpu{core} 0 0 0 0 0\n" for core in CORES), "cpu99999 1 2 3 4 5"],
)
def test_there_is_none_where_the_system_does_not_tell(machine: Machine, text: str) -> None:
    machine.stat.write_text(text)
    contention = CpuContention(len(CORES), machine.stat, machine.clock)
    machine.passes(SECONDS, idle=0)
    machine.stat.write_text(text)
    assert not contention.look()
    machine.stat.unlink()
    machine.passes(SECONDS, idle=0)
    machine.stat.unlink()
    assert not contention.look()


def test_this_machine_tells() -> None:
    contention = CpuContention(len(CORES) + 1)
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        pass
    assert contention.look(), "nobody has more cores than there are"
