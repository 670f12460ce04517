"""Command lines as users run them: real processes in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.gateway.cli.hub_server import Hub, serve

ROOT = Path(__file__).resolve().parents[3]
GGUF = b"GGUF" + bytes(range(256)) * 4096

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No settings but a home and a data directory of the test's own."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("HEARTH_", "HF_", "XDG_"))
    }
    return {
        **kept,
        "HOME": str(tmp_path / "home"),
        "HEARTH_DATA_DIR": str(tmp_path / "data"),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_DOWNLOAD_TIMEOUT": "5",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "120",
    }


@pytest.fixture
def command() -> list[str]:
    return [sys.executable, "-m", "gateway.cli.main"]


@pytest.fixture
def hearth(environment: dict[str, str], command: list[str], tmp_path: Path) -> Run:
    """Run one command line to its end. Keyword arguments are extra environment."""

    def run(*arguments: str, stdin: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments],
            env={**environment, **extra},
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture
def hub() -> Iterator[Hub]:
    hub = Hub({"owner/repo/model.gguf": GGUF, "owner/repo/sub/other.gguf": b"GGUF other"})
    server = serve(hub)
    yield hub
    if hub.slow is not None:
        hub.slow.set()
    server.shutdown()
    server.server_close()
