"""CPU contention, read from a fake ``/proc/stat``."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from model_host.engine.cpu_contention import FIRST_SECONDS, LOOK_SECONDS, CpuContention

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

    def passes(self, seconds: float, *, idle: float, elsewhere: float = 0.0, running: int = 1) -> None:
        """Pass time, in which each core of this process idles ``idle`` seconds, and a foreign core ``elsewhere``."""
        self._now += seconds
        self._ticks += idle * os.sysconf("SC_CLK_TCK")
        rows = [f"cpu{core} 1 2 3 {self._ticks:.0f} 5 6 7 8 9 10" for core in CORES]
        foreign = f"cpu{CORES[-1] + 1} 0 0 0 {elsewhere * os.sysconf('SC_CLK_TCK'):.0f} 0 0"
        lines = ["cpu  9 9 9 9 9 9 9 9 9 9", *rows, foreign, "intr 9 9", f"procs_running {running}"]
        replacing = self.stat.with_suffix(".new")  # a look in another thread never sees half of a file
        replacing.write_text("\n".join(lines))
        replacing.replace(self.stat)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def contention(machine: Machine) -> CpuContention:
    return CpuContention(len(CORES), pytest.fail, machine.stat, machine.clock)


def test_it_is_there_while_half_a_core_is_missing(machine: Machine, contention: CpuContention) -> None:
    assert not contention.present
    for missing, present in ((0.0, False), (0.6, True), (0.9, True), (0.4, False), (1.0, True), (0.0, False)):
        machine.passes(SECONDS, idle=SECONDS * (1 - missing / len(CORES)))
        assert contention.look() is present, missing
        assert contention.present is present


def test_after_a_pause_a_batch_has_fewer_threads_only_if_others_run_now(
    machine: Machine, contention: CpuContention
) -> None:
    def after(seconds: float, running: int) -> int:
        """Threads of a batch after a pause, while so many threads run; there was contention before."""
        contention.batch_begins()
        machine.passes(SECONDS, idle=0)
        assert contention.look()
        contention.batch_ended()
        machine.passes(seconds, idle=0, running=running)
        contention.batch_begins()
        return contention.most_threads

    every, half = len(CORES), max(1, len(CORES) // 2)
    assert after(1, running=every) == every
    assert after(1, running=every + 1) == half
    assert after(LOOK_SECONDS / 2, running=1) == half, "there was no pause"
    contention.batch_ended()
    machine.passes(1, idle=0)
    assert contention.most_threads == every, "nothing is known of the next batch"


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("now", [True, False])
def test_a_batch_that_starts_with_the_wrong_number_of_threads_is_aborted(
    machine: Machine, before: bool, now: bool
) -> None:
    """Contention ``before`` the batch and ``now``. The machine's clock goes on while the watching thread sleeps."""
    aborted = threading.Event()
    contention = CpuContention(len(CORES), aborted.set, machine.stat, machine.clock)
    machine.passes(SECONDS, idle=0 if before else SECONDS, running=len(CORES) + 1)
    assert contention.look() is before
    contention.watch()
    contention.batch_begins()
    assert contention.present is before
    until = time.monotonic() + (2 * FIRST_SECONDS if before is now else 20)
    while time.monotonic() < until and not aborted.is_set():
        machine.passes(0.5, idle=0 if now else 0.5)
        time.sleep(FIRST_SECONDS / 10)
    assert aborted.is_set() is (before is not now)
    assert contention.present is now


def test_cores_that_this_process_may_not_use_do_not_count(
    machine: Machine, contention: CpuContention
) -> None:
    machine.passes(SECONDS, idle=0, elsewhere=SECONDS)
    assert contention.look()


def test_its_own_threads_are_no_contention(machine: Machine) -> None:
    machine.passes(SECONDS, idle=SECONDS)
    contention = CpuContention(1, pytest.fail, machine.stat, time.process_time)
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
    contention = CpuContention(len(CORES), pytest.fail, machine.stat, machine.clock)
    machine.passes(SECONDS, idle=0)
    machine.stat.write_text(text)
    assert not contention.look()
    machine.stat.unlink()
    machine.passes(SECONDS, idle=0)
    machine.stat.unlink()
    assert not contention.look()


def test_this_machine_tells() -> None:
    contention = CpuContention(len(CORES) + 1, pytest.fail)
    until = time.monotonic() + 0.2
    while time.monotonic() < until:
        pass
    assert contention.look(), "nobody has more cores than there are"
