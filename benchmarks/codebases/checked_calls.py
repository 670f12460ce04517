"""Precision and recall of the call graph in TypeScript against the compiler's own checker, on packages of npm.

`npm pack` fetches the packages, whose releases contain their source, and the compiler; Node runs the checker. Each call
is judged: one edge for what the checker resolves it to, none if that is outside of the package. Calls of what only a
type describes (a parameter, a property, `any`) have no definition and are not judged.

    python benchmarks/codebases/checked_calls.py [--at FOLDER] [--wrong] [PACKAGE@VERSION/FOLDER…]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tarfile
import tempfile
from collections import defaultdict
from pathlib import Path

from benchmarks.codebases.common import indexed, new_database, table_head, table_row
from gateway.code.resolving.values import CONFIRMED
from gateway.code.walk import walk

_COMPILER = "typescript@5.9.3"
_PACKAGES = ["rxjs@7.8.2/src", "ajv@8.20.0/lib", "@tanstack/query-core@5.108.0/src", "zod@4.6.7/src"]

Call = tuple[str, int, int, str]  # file, line, column, name
Found = dict[Call, dict[tuple[str, int], float]]  # the lines of definitions, and how sure each is


def fetched(package: str, scratch: Path) -> Path:
    """The folder of a package of npm."""
    folder = scratch / package.strip("@").replace("/", "-")
    if not folder.is_dir():
        folder.mkdir()
        done = subprocess.run(
            ["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True, text=True
        )
        with tarfile.open(folder / done.stdout.strip().splitlines()[-1]) as archive:
            archive.extractall(folder, filter="data")
    return folder / "package"


def graph(root: Path) -> Found:
    """The calls that hearth finds: classes for `new`, functions for the rest."""
    with new_database() as database:
        indexed(database, root)
        rows = database.read_sync(
            lambda c: c.execute(
                "SELECT home.path, s.line, s.column, s.name, away.path, coalesce(owner.line, d.line), e.confidence "
                "FROM code_sites AS s JOIN code_files AS home ON home.id = s.file "
                "JOIN code_edges AS e ON e.site = s.id "
                "JOIN code_definitions AS d ON d.id = e.target JOIN code_files AS away ON away.id = d.file "
                "LEFT JOIN code_definitions AS owner ON owner.file = d.file AND owner.ordinal = d.parent "
                "AND d.name = 'constructor' WHERE s.kind = 'call' AND (d.name <> 'constructor' OR s.name = 'super')"
            ).fetchall()
        )
    found: Found = defaultdict(dict)
    for path, line, column, name, away, defined, confidence in rows:
        targets = found[str(path), int(str(line)), int(str(column)), str(name)]
        target = (str(away), int(str(defined)))
        targets[target] = max(targets.get(target, 0.0), float(str(confidence)))
    return found


def judged(root: Path, compiler: Path, *, wrong: bool) -> list[int]:
    """Calls, edges expected, confirmed, right ones, edges found, right ones."""
    files = [str(root / each.path) for each in walk(root, []).files if each.path.endswith(".ts")]
    script = Path(__file__).with_suffix(".cjs")
    done = subprocess.run(
        ["node", str(script), str(compiler), str(root), *files], check=True, capture_output=True, text=True
    )
    found = graph(root)
    counts = [0] * 6
    for path, line, column, name, defined in map(json.loads, done.stdout.splitlines()):
        wanted = {(defined[0], each) for each in defined[1:]} if defined else set()
        targets = found.get((path, line, column, name), {})
        right = [sure for target, sure in targets.items() if target in wanted]
        sure = [each for each in targets.values() if each >= CONFIRMED]
        numbers = [1, bool(wanted), len(sure), any(s >= CONFIRMED for s in right), len(targets), bool(right)]
        counts = [a + b for a, b in zip(counts, numbers, strict=True)]
        if wrong and wanted and not right:
            print(f"missing  {path}:{line}:{column} {name} -> {defined}")
        for target, confidence in targets.items() if wrong else ():
            if target not in wanted:
                print(
                    f"{'WRONG' if confidence >= CONFIRMED else 'possible'}  {path}:{line}:{column} {name} -> {target}"
                )
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("packages", nargs="*", default=_PACKAGES, help="with the folder of their source")
    parser.add_argument("--at", type=Path, help="where packages are kept")
    parser.add_argument("--wrong", action="store_true", help="list every edge that is missing or wrong")
    options = parser.parse_args()
    print(table_head("package", "calls"))
    with tempfile.TemporaryDirectory() as temporary:
        scratch = options.at or Path(temporary)
        for each in options.packages:
            package, _, folder = each.rpartition("/")
            root, compiler = fetched(package, scratch) / folder, fetched(_COMPILER, scratch)
            print(table_row(package, judged(root, compiler, wrong=options.wrong)))


if __name__ == "__main__":
    main()
