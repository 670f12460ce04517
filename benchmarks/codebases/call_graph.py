"""Precision and recall of the call graph on PyCG's micro-benchmark: small programs with the calls that they make.

The benchmark is in PyCG's source distribution (https://pypi.org/project/pycg, Apache licence 2.0), which `pip download`
fetches unless ``--at`` names a folder with `micro-benchmark/snippets`. A caller and a callee are an edge; calls of
built-in and foreign functions count as well. V. Salis et al., "PyCG: practical call graph generation in Python",
ICSE 2021.

    python benchmarks/codebases/call_graph.py [--at FOLDER] [--wrong]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from benchmarks.codebases.common import fetched, indexed, new_database, table_head, table_row
from gateway.code.resolving.values import CONFIRMED
from gateway.store.db import Database

Edge = tuple[str, str]


def edges(database: Database, root: Path) -> dict[Edge, float]:
    """The calls that hearth finds, and how sure it is of each."""
    project = indexed(database, root)
    rows = database.read_sync(
        lambda c: c.execute(
            "SELECT caller.qualified, callee.qualified, callee.kind, confidence, external FROM code_files "
            "JOIN code_sites ON code_sites.file = code_files.id AND code_sites.kind IN ('call', 'implicit') "
            "JOIN code_definitions AS caller ON caller.file = code_files.id AND caller.ordinal = scope "
            "LEFT JOIN code_edges ON site = code_sites.id LEFT JOIN code_definitions AS callee ON callee.id = target "
            "WHERE project = ?",
            (project.id,),
        ).fetchall()
    )
    found: dict[Edge, float] = {}
    for caller, callee, kind, confidence, external in rows:
        if kind in ("class", "module") or (callee is None and external is None):
            continue
        outside = (
            str(external).replace("()", "").replace("<str>", "<**PyStr**>").replace("<dict>", "<**PyDict**>")
        )
        edge = (str(caller), str(callee or outside))
        found[edge] = max(found.get(edge, 0.0), float(str(confidence or 1.0)))
    return found


def measured(folder: Path) -> Iterator[tuple[str, str, dict[Edge, float], set[Edge]]]:
    """Category, name, edges found and edges expected of each program."""
    with new_database() as database:
        for truth in sorted(folder.glob("*/*/callgraph.json")):
            graph = json.loads(truth.read_text())
            wanted = {(caller, callee) for caller, callees in graph.items() for callee in callees}
            yield truth.parent.parent.name, truth.parent.name, edges(database, truth.parent), wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--at", type=Path)
    parser.add_argument("--wrong", action="store_true", help="list every edge that is missing or wrong")
    options = parser.parse_args()
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0] * 6)
    with tempfile.TemporaryDirectory() as scratch:
        package = options.at or fetched("pycg==0.0.8", Path(scratch))
        for category, name, found, wanted in measured(package / "micro-benchmark" / "snippets"):
            sure = {edge for edge, confidence in found.items() if confidence >= CONFIRMED}
            numbers = [1, len(wanted), len(sure), len(sure & wanted), len(found), len(found.keys() & wanted)]
            for row in (category, "all"):
                counts[row] = [a + b for a, b in zip(counts[row], numbers, strict=True)]
            for edge in sorted(wanted - found.keys()) if options.wrong else ():
                print(f"missing  {category}/{name}: {' -> '.join(edge)}")
            for edge in sorted(found.keys() - wanted) if options.wrong else ():
                print(f"{'WRONG' if edge in sure else 'possible'}  {category}/{name}: {' -> '.join(edge)}")
    print(table_head("category", "programs"))
    for category, row in sorted(counts.items(), key=lambda each: each[0] == "all"):
        print(table_row(category, row))


if __name__ == "__main__":
    main()
