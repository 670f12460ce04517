"""Rows made by several threads at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

# Many classes, because the danger is in the first row of each; the shortest turns, because it is in the middle of it.
_FIRST_ROWS = """
import sys, threading
from typing import Annotated, Literal
import msgspec
from gateway.store.rows import converted

sys.setswitchinterval(1e-6)
Level = Literal["now", "today"]
kinds = [
    msgspec.defstruct(
        f"Row{n}",
        [
            ("a", int),
            ("b", Annotated[str, msgspec.Meta(pattern=f"^[a-z]{{1,{n + 1}}}$")]),
            ("c", Level),
            ("d", "int | None"),
        ],
    )
    for n in range(400)
]
barrier = threading.Barrier(4)

def work():
    for kind in kinds:
        barrier.wait()
        assert converted({"a": 1, "b": "x", "c": "now", "d": None}, kind).a == 1

threads = [threading.Thread(target=work) for _ in range(4)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
print("all made")
"""


def test_the_first_rows_of_a_class_may_come_in_several_threads() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FIRST_ROWS],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "all made\n"), done.stderr[-2000:]
