"""Ctrl-C and SIGTERM at moments when Python loses them, or answers with a traceback: amid an import."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli.common.runfile import running
from tests.gateway.cli.conftest import COMMAND, ROOT
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


@pytest.mark.parametrize(("number", "status"), [(2, 130), (15, 143)])
@pytest.mark.parametrize("moment", ["click", "gateway.cli.models", "msgspec"])
def test_a_command_that_is_stopped_while_it_is_imported(
    environment: dict[str, str], moment: str, number: int, status: int
) -> None:
    done = interrupted(environment, number, moment, "models")
    assert (done.returncode, done.stdout) == (status, ""), done.stderr
    assert "Traceback" not in done.stderr and "ignored" not in done.stderr


def test_sigterm_ends_the_download_of_a_package_and_leaves_no_temporary_files(
    environment: dict[str, str], tmp_path: Path
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    with socket.create_server(("127.0.0.1", 0)) as index:
        index.settimeout(PATIENCE)
        address = f"http://127.0.0.1:{index.getsockname()[1]}/simple"
        pip = {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": address, "PIP_NO_CACHE_DIR": "1"}
        pull = subprocess.Popen(
            [*COMMAND, "pull"],
            env=environment | pip | {"TMPDIR": str(temporary)},
            cwd=ROOT,
        )
        with index.accept()[0] as asked:
            asked.settimeout(PATIENCE)
            assert asked.recv(1 << 16).startswith(b"GET /simple/")
            assert list(temporary.iterdir())
            pull.terminate()
            assert asked.recv(1) == b"", "pip goes on"
        assert pull.wait(PATIENCE) == 143
    assert not list(temporary.iterdir())
