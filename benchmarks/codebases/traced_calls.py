"""Recall of the call graph against the calls that this pytest plugin sees while tests of hearth run.

Edges are pairs of functions of the product. A call by native code, such as `sorted` with a key, counts apart: the text
has no call there. So do properties and special methods, which run without a call in the text.

    python benchmarks/codebases/traced_calls.py [--missing] [TESTS…]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from benchmarks.codebases.common import indexed, new_database
from gateway.code.resolving.values import CONFIRMED
from gateway.store.db import Database

_ROOT = Path(__file__).resolve().parent.parent.parent
_TESTS = ["wiki", "memory/learning", "base"]
_FOLDERS = tuple(f"{_ROOT}/{name}/" for name in ("gateway", "model_host", "clients"))
_COMPREHENSIONS = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
_OPTIMIZED = 1  # flag of the code of functions; modules and class bodies do not have it

_seen: set[tuple[CodeType, CodeType, bool]] = set()
_native = threading.local()


def _profile(frame: FrameType, event: str, _argument: Any) -> None:
    if event == "call":
        caller = frame.f_back
        inside = getattr(_native, "frame", None) is caller
        while caller is not None and caller.f_code.co_name in _COMPREHENSIONS:
            caller = caller.f_back
        code = frame.f_code
        if (
            caller is not None
            and code.co_filename.startswith(_FOLDERS)
            and caller.f_code.co_filename.startswith(_FOLDERS)
            and code.co_flags & _OPTIMIZED
            and code.co_name not in _COMPREHENSIONS
        ):
            _seen.add((caller.f_code, code, inside))
    elif event == "c_call":
        _native.frame = frame
    elif event in ("c_return", "c_exception"):
        _native.frame = None


@pytest.hookimpl
def pytest_sessionstart() -> None:
    threading.setprofile(_profile)
    sys.setprofile(_profile)


@pytest.hookimpl
def pytest_sessionfinish() -> None:
    sys.setprofile(None)
    threading.setprofile(None)  # type: ignore[arg-type]

    def place(code: CodeType) -> list[str | int]:
        return [str(Path(code.co_filename).relative_to(_ROOT)), code.co_name, code.co_firstlineno]

    calls = [[*place(caller), *place(callee), native] for caller, callee, native in _seen]
    Path(os.environ["TRACED_CALLS"]).write_text(json.dumps(calls))


def traced(tests: list[str], scratch: Path) -> list[list[str | int]]:
    out = scratch / "calls.json"
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "benchmarks.codebases.traced_calls"]
    done = subprocess.run(
        [sys.executable, *command, *tests],
        cwd=_ROOT,
        env={**os.environ, "TRACED_CALLS": str(out)},
        capture_output=True,
        text=True,
        check=False,
    )
    print((done.stdout.strip().splitlines() or [done.stderr])[-1], file=sys.stderr)
    return json.loads(out.read_text())  # type: ignore[no-any-return]


class Graph:
    """hearth's edges between functions, and its functions by file."""

    def __init__(self, database: Database) -> None:
        indexed(database, _ROOT)
        edges = "JOIN code_sites AS s ON s.file = d.file AND s.scope = d.ordinal JOIN code_edges AS e ON e.site = s.id"
        rows = database.read_sync(
            lambda c: c.execute(
                f"SELECT d.id, e.target, max(e.confidence) FROM code_definitions AS d {edges} "
                "WHERE s.kind IN ('call', 'implicit') GROUP BY 1, 2"
            ).fetchall()
        )
        self.sure = {(a, b): confidence for a, b, confidence in rows}
        self.functions: defaultdict[str, list[tuple[int, str, int, bool]]] = defaultdict(list)
        for path, line, name, number, signature in database.read_sync(
            lambda c: c.execute(
                "SELECT path, line, code_definitions.name, code_definitions.id, signature FROM code_definitions "
                "JOIN code_files ON code_files.id = file WHERE kind <> 'class' ORDER BY line"
            ).fetchall()
        ):
            self.functions[str(path)].append((int(str(line)), str(name), int(str(number)), bool(signature)))

    def find(self, path: str, name: str, line: int) -> list[int]:
        """The definition of a code object; its first line may be that of a decorator."""
        if name == "<module>":
            return [number for _, _, number, _ in self.functions[path][:1]]
        alike = [
            (at, number) for at, known, number, _ in self.functions[path] if known == name and at >= line
        ]
        return [number for at, number in alike if at == alike[0][0]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tests", nargs="*", default=[f"tests/gateway/{name}" for name in _TESTS])
    parser.add_argument("--missing", action="store_true", help="list the calls that the graph lacks")
    options = parser.parse_args()
    counts: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    with tempfile.TemporaryDirectory() as scratch:
        calls = traced(options.tests, Path(scratch))
    with new_database() as database:
        graph = Graph(database)
    for path, name, line, to, called, at, native in calls:
        callers, callees = graph.find(path, name, line), graph.find(to, called, at)
        sure = max((graph.sure.get((a, b), 0.0) for a in callers for b in callees), default=0.0)
        special = called.startswith("__") and called != "__init__"
        kind = "by native code" if native else "special methods" if special else "calls"
        if kind == "calls" and is_property(to, at):
            kind = "properties"
        for row in (kind, *(["all but by native code"] if not native else [])):
            counts[row] = [a + b for a, b in zip(counts[row], [1, sure >= CONFIRMED, sure > 0], strict=True)]
        if options.missing and not sure:
            print(f"{kind}: {path}:{line} {name} -> {to}:{at} {called}")
    print("| edges seen | number | recall of confirmed | with possible |")
    print("|---|--:|--:|--:|")
    for kind, (number, confirmed, found) in sorted(counts.items()):
        print(f"| {kind} | {number} | {confirmed / number:.2f} | {found / number:.2f} |")


def is_property(path: str, line: int) -> bool:
    """Whether the function whose decorator or first line this is is a property."""
    return (_ROOT / path).read_text().splitlines()[line - 1].strip() in ("@property", "@cached_property")


if __name__ == "__main__":
    main()
