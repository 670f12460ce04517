"""Shared parts of the benchmarks of this folder: packages of PyPI, and a database with the graph of their code."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gateway.cli.common.files import opened_database
from gateway.code.index import ProjectIndexer
from gateway.store.code.projects import CodeProject, add_project
from gateway.store.db import Database


def fetched(package: str, scratch: Path, *, source: bool = True) -> Path:
    """The unpacked source distribution of a package, or its wheel; pip downloads it."""
    folder = scratch / package
    kind = "--no-binary" if source else "--only-binary"
    options = ("-q", "--no-deps", kind, ":all:", "-d", folder)
    subprocess.run([sys.executable, "-m", "pip", "download", *options, package], check=True)
    archive = next(folder.iterdir())
    if not source:
        shutil.unpack_archive(archive, folder, "zip")
        return folder
    shutil.unpack_archive(archive, folder, filter="data")
    return next(each for each in folder.iterdir() if each.is_dir())


_HEADS = "edges", "confirmed: precision", "recall", "with possible: precision", "recall"


def table_head(*first: str) -> str:
    return f"| {' | '.join([*first, *_HEADS])} |\n|---|{'--:|' * 6}"


def table_row(name: str, counts: list[int]) -> str:
    """A row of the number of programs or calls; of edges expected, confirmed, right; of edges found, right."""
    number, wanted, sure, right, found, all_right = counts
    shares = [right / max(sure, 1), right / wanted, all_right / max(found, 1), all_right / wanted]
    return f"| {name} | {number} | {wanted} | {' | '.join(f'{share:.2f}' for share in shares)} |"


@contextmanager
def new_database() -> Iterator[Database]:
    with tempfile.TemporaryDirectory() as folder, opened_database(Path(folder) / "graph.db") as database:
        yield database


def indexed(database: Database, root: Path, name: str = "") -> CodeProject:
    """Register a folder, under its path unless it gets a name, and index it."""
    project = database.write_sync(lambda c: add_project(c, str(root), name or str(root), [], docs=False))
    ProjectIndexer(database, project).run()
    return project
