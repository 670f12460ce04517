"""Command lines as users run them: real processes in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gateway.cli.common.runfile import running
from tests.gateway.cli.hub.hub_server import Hub, serving
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
GGUF = b"GGUF" + bytes(range(256)) * 4096

# The console script's entry point. Tests that run in a background job inherit an ignored SIGINT.
_SCRIPT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from gateway.cli.entry import main
main()
"""
COMMAND = [sys.executable, "-c", _SCRIPT]

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def base_environment() -> dict[str, str]:
    """This process's environment without any settings."""
    prefixes = ("HEARTH_", "HF_", "XDG_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
    return {**kept, "PYTHONPATH": str(ROOT), "COLUMNS": "120"}


@pytest.fixture
def environment(tmp_path: Path, base_environment: dict[str, str]) -> dict[str, str]:
    """No settings except the test's own home and data directory."""
    return {
        **base_environment,
        "HOME": str(tmp_path / "home"),
        "HEARTH_DATA_DIR": str(tmp_path / "data"),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_DOWNLOAD_TIMEOUT": "5",
    }


@pytest.fixture(scope="module")
def served(
    tmp_path_factory: pytest.TempPathFactory, tiny_model: Path, base_environment: dict[str, str]
) -> Iterator[dict[str, str]]:
    """The environment of a detached server on the tiny model, with short answers."""
    folder = tmp_path_factory.mktemp("served")
    environment = {
        **base_environment,
        "HOME": str(folder),
        "HEARTH_DATA_DIR": str(folder / "data"),
        "HEARTH_SERVER__PORT": "0",
        "HEARTH_MODEL__NAME": str(tiny_model),
        "HEARTH_MODEL__THREADS": "1",
        "HEARTH_ASK__ANSWER_TOKENS": "32",
        "HEARTH_ASK__PAGES": "1",
    }
    started = run_command(environment, folder, "start", "--detach")
    assert started.returncode == 0, started.stderr
    assert started.stdout.splitlines()[0].startswith("listening on http://127.0.0.1:")
    assert started.stdout.splitlines()[1].startswith("try: curl -N ")
    yield environment
    stopped = run_command(environment, folder, "stop")
    assert (stopped.returncode, "stopped (process" in stopped.stdout) == (0, True), stopped.stderr
    assert running(folder / "data") is None


@pytest.fixture
def command() -> list[str]:
    return COMMAND


@pytest.fixture
def hearth(environment: dict[str, str], tmp_path: Path) -> Run:
    """Run one command line to its end. Keyword arguments are extra environment."""

    def run(*arguments: str, stdin: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
        return run_command({**environment, **extra}, tmp_path, *arguments, stdin=stdin)

    return run


def run_command(
    environment: dict[str, str], cwd: Path, *arguments: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run one command line to its end."""
    return subprocess.run(
        [*COMMAND, *arguments],
        env=environment,
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        errors="surrogateescape",
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture
def hub() -> Iterator[Hub]:
    with serving(Hub({"owner/repo/model.gguf": GGUF, "owner/repo/sub/other.gguf": b"GGUF other"})) as hub:
        yield hub
