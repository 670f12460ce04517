"""Indexing in several processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
import pytest

from gateway.base.errors import HearthError
from gateway.code.processes import in_processes, processes_for
from gateway.store.db import Database
from tests.gateway.code.conftest import Indexable, Make
from tests.waiting import eventually

FILES = {
    f"m{i}.py": f"import m{(i + 1) % 210} as other\ndef f{i}(then):\n    then()\ndef g{i}(): ...\n"
    f"other.f{(i + 1) % 210}(g{i})\n"
    for i in range(210)
}


def doubled(number: int) -> int:
    return 2 * number


def make_doubled() -> Callable[[int], int]:
    return doubled


def fatal(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def make_fatal() -> Callable[[int], int]:
    return fatal


def test_results_come_in_order() -> None:
    for count in (1, 2):
        with in_processes(count, make_doubled) as run:
            assert list(run(range(50))) == list(range(0, 100, 2))


def test_a_killed_process_is_an_error_with_what_to_do() -> None:
    with (
        pytest.raises(HearthError, match="a process that indexes was killed"),
        in_processes(2, make_fatal) as run,
    ):
        list(run([1, 2, 3]))


def test_few_files_are_worth_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.code.processes.usable_cores", lambda: 64)
    assert [processes_for(files) for files in (0, 199, 200, 10_000)] == [1, 1, 2, 4]
    monkeypatch.setattr("gateway.code.processes.usable_cores", lambda: 1)
    assert processes_for(10_000) == 1


def test_the_index_is_the_same_with_any_number_of_processes(
    project: Make, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.code.processes.usable_cores", lambda: 1)
    one = project({"notes.md": "# Notes\n", "bad.py": b"\0", **FILES})
    monkeypatch.setattr("gateway.code.processes.usable_cores", lambda: 2)
    two = Indexable(database, tmp_path / "other")
    two.write({"notes.md": "# Notes\n", "bad.py": b"\0", **FILES})
    done = two.index()
    assert (done.parsed, done.walk.left_out) == (211, {"binary": 1})
    assert one.edges() == two.edges()
    assert len(two.edges()) == 420
    assert two.index().parsed == 0


def test_processes_end_with_the_one_that_they_work_for(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    for path, text in FILES.items():
        (root / path).write_text(text * 50)
    script = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom gateway.code.index import ProjectIndexer\n"
        "from gateway.store.code.projects import add_project\nfrom gateway.store.db import Database\n"
        "import gateway.code.processes as processes\nprocesses.usable_cores = lambda: 2\n"
        "import psutil\n"
        "database = Database(Path(sys.argv[1]))\ndatabase.open()\n"
        "def progress(stage, done, total):\n"
        "    print(*(each.pid for each in psutil.Process().children(recursive=True)), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "row = database.write_sync(lambda c: add_project(c, sys.argv[2], 'p', [], docs=False))\n"
        "ProjectIndexer(database, row, progress).run()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "hearth.db"), str(root)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    assert done.returncode == -signal.SIGKILL
    pids = [int(each) for each in done.stdout.split()]
    assert len(pids) >= 2
    eventually(partial(_gone, pids), "processes outlive the one that they work for")


def _gone(pids: list[int]) -> bool:
    """Whether none of them runs; where nobody waits for orphans, they remain as zombies."""
    running = [
        each.pid for each in psutil.process_iter(["status"]) if each.info["status"] != psutil.STATUS_ZOMBIE
    ]
    return not set(pids) & set(running)
