"""How fast a codebase is indexed, a change is seen and a question is answered, on Django's source distribution.

`pip download` fetches it, unless ``--at`` names a folder (which is changed and restored).

    python benchmarks/codebases/code_index.py [--at FOLDER] [--changes 20] [--questions 400]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.codebases.common import fetched
from gateway.base.supervised import Supervision
from gateway.cli.common.files import opened_database
from gateway.code import queries
from gateway.code.index import merge_index
from gateway.code.outline import outline
from gateway.code.watch import ProjectWatcher
from gateway.store.code.projects import list_projects
from gateway.store.db import Database

_PACKAGE = "django==5.2.19"
_BY_NAME = ("callers", "callees", "references", "find", "subclasses", "imports", "impact")
_BETWEEN = 2.0  # seconds from a visible change to the next: a person's, not those of a checkout


def first_index(data: Path, folder: Path) -> tuple[float, float, float, str]:
    """Wall seconds, CPU seconds, peak megabytes and the summary of `hearth context add`."""
    add = ("context", "add", str(folder), "--data-dir", str(data))
    command = [sys.executable, "-m", "gateway.cli.main", *add]
    begun = time.perf_counter()
    process = psutil.Popen(command, stdout=subprocess.PIPE, text=True)
    peak = 0.0
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        peak = max(peak, _memory(process))
        time.sleep(0.2)
    said, _ = process.communicate()
    if process.returncode:
        raise SystemExit(process.returncode)
    seconds, used = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return seconds, used.ru_utime + used.ru_stime, peak, said.strip()


def _memory(process: psutil.Process) -> float:
    """Megabytes of a process and its children; what several share counts once (proportional set size)."""
    total = 0
    for each in [process, *process.children(recursive=True)]:
        with contextlib.suppress(psutil.Error):
            total += each.memory_full_info().pss
    return total / 1e6


async def changes(database: Database, data: Path, files: list[Path]) -> tuple[list[float], float]:
    """Seconds from a write to the answer of a query with a watcher running, and CPU seconds of 10 idle ones."""
    project = database.read_sync(list_projects)[0].id
    watcher = ProjectWatcher(database, data)
    watcher.start(Supervision())
    while not (data / "projects").is_dir():
        await asyncio.sleep(0.05)

    async def visible(name: str) -> None:
        """Wait for the definition and for the call in it."""
        while not await database.read(lambda c: queries.graph.places_named(c, project, name)):
            await asyncio.sleep(0.005)
        while not (await database.read(lambda c: queries.callers(c, project, name))).confirmed:
            await asyncio.sleep(0.005)

    async def change(file: Path, name: str) -> float:
        before = file.read_text()
        begun = time.perf_counter()
        file.write_text(f"{before}\n\ndef {name}():\n    return {name}()\n")
        await visible(name)
        seconds = time.perf_counter() - begun
        file.write_text(before)
        while await database.read(lambda c: queries.graph.places_named(c, project, name)):
            await asyncio.sleep(0.005)
        return seconds

    await change(files[0], "before_the_first")  # once the watcher runs
    seconds = []
    for index, file in enumerate(files):
        await asyncio.sleep(_BETWEEN)
        seconds.append(await change(file, f"added_{index}"))
    await asyncio.sleep(5)
    begun = sum(os.times()[:2])
    await asyncio.sleep(10)
    idle = sum(os.times()[:2]) - begun
    await watcher.close()
    return seconds, idle


def questions(database: Database, count: int) -> dict[str, list[float]]:
    """Seconds of each query, over random definitions."""
    project = database.read_sync(list_projects)[0].id
    names = database.read_sync(
        lambda c: [
            str(name)
            for (name,) in c.execute(
                "SELECT qualified FROM code_definitions WHERE kind IN ('function', 'method', 'class') ORDER BY id"
            )
        ]
    )
    asked = {
        **{name: getattr(queries, name) for name in _BY_NAME},
        "search": lambda c, project, name: queries.search(c, project, name.replace(".", " "), 20),
    }
    seconds: dict[str, list[float]] = {}
    for name in random.Random(1).sample(names, count // len(asked)):
        for kind, ask in asked.items():
            begun = time.perf_counter()
            database.read_sync(lambda c, ask=ask, name=name: ask(c, project, name))  # type: ignore[misc]
            seconds.setdefault(kind, []).append(time.perf_counter() - begun)
    begun = time.perf_counter()
    database.read_sync(lambda c: outline(c, project, 1000))
    seconds["map"] = [time.perf_counter() - begun]
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at", type=Path)
    parser.add_argument("--changes", type=int, default=20)
    parser.add_argument("--questions", type=int, default=800)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder, data = options.at or fetched(_PACKAGE, Path(scratch)), Path(scratch) / "data"
        seconds, cpu, peak, summary = first_index(data, folder)
        print(summary)
        load = os.getloadavg()[0]
        print(
            f"first index: {seconds:.1f} s, {cpu:.1f} s of CPU, {peak:.0f} MB at most in all, load {load:.1f}"
        )
        with opened_database(data / "hearth.db") as database:
            print(f"database: {database.health().size_bytes / 1e6:.0f} MB")
            files = random.Random(1).sample(sorted((folder / "django").rglob("*.py")), options.changes)
            seen, idle = asyncio.run(changes(database, data, files))
            print(
                f"a change is visible after {statistics.median(seen):.2f} s in the median, {max(seen):.2f} s at most"
            )
            print(f"an idle watcher: {idle:.2f} s of CPU in 10 s")
            report("right after the changes", questions(database, options.questions))
            merge_index(database)
            report("after two quiet minutes", questions(database, options.questions))


def report(when: str, times: dict[str, list[float]]) -> None:
    every = sorted(each for kind, found in times.items() if kind != "map" for each in found)
    median, slowest = every[len(every) // 2] * 1e3, every[int(len(every) * 0.99)] * 1e3
    print(f"a query, {when}: {median:.1f} ms in the median, {slowest:.1f} ms in the 99th percentile")
    for kind, found in times.items():
        print(f"  {kind}: {statistics.median(found) * 1e3:.1f} ms, at most {max(found) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
