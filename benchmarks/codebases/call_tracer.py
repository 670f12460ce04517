"""A pytest plugin that records which functions of a project call which, into the file that TRACED_CALLS names.

TRACED_CALLS=calls.json python -m pytest -p benchmarks.codebases.call_tracer tests/gateway/wiki
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parent.parent.parent
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
