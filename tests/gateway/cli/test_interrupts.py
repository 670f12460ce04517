"""Ctrl-C and SIGTERM at moments when Python loses them, or answers with a traceback: amid an import."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.common.runfile import running
from tests.gateway.cli.conftest import ROOT
from tests.waiting import PATIENCE

# Sends this process a signal while the named module is being imported, from a finalizer: what a handler raises there is
# lost. Then runs the command line.
_SCRIPT = """
import importlib.abc, os, signal, sys
number, moment, entry, *arguments = sys.argv[1:]
# A test that runs in the background inherits that Ctrl-C is ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

class Dying:
    def __del__(self):
        os.kill(os.getpid(), int(number))
        for _ in range(10): pass

class Watcher(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == moment:
            Dying()

sys.meta_path.insert(0, Watcher())
sys.argv = ["hearth", *arguments]
exec(f"from {entry} import main")
main()
"""


def interrupted(
    environment: dict[str, str], number: int, moment: str, *arguments: str, entry: str = "gateway.cli.entry"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(number), moment, entry, *arguments],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("number", [2, 15])
def test_a_server_that_is_told_to_stop_while_it_starts(
    environment: dict[str, str], tiny_model: Path, tmp_path: Path, number: int
) -> None:
    arguments = ("start", "--port", "0", "--model", str(tiny_model))
    done = interrupted(environment, number, "uvicorn", *arguments)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr
    assert running(tmp_path / "data") is None


@pytest.mark.parametrize("moment", ["click", "gateway.cli.models", "msgspec"])
def test_ctrl_c_while_a_command_is_imported(environment: dict[str, str], moment: str) -> None:
    done = interrupted(environment, 2, moment, "models")
    assert (done.returncode, done.stdout) == (130, ""), done.stderr
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr
