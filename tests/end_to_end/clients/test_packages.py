"""Other programs' clients and agents, in an environment of their own, through the whole program with a real model."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.clients import NAMES
from tests.caching import cached
from tests.end_to_end.server import Server
from tests.waiting import PATIENCE

LOCKS = Path(__file__).parent / "packages"
PROGRAM = Path(__file__).parents[3] / "benchmarks" / "clients.py"
INSTALL_SECONDS = 900
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("HEARTH_", "XDG_"))}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, demo_model: str) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("packages") / "data", demo_model)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def python_packages() -> Path | str:
    """A folder for PYTHONPATH; or why there is none."""
    lock = LOCKS / "requirements.lock"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes", "-r", str(lock)]
    return installed(lock, lambda folder: [*pip, "--target", str(folder)])


@pytest.fixture(scope="module")
def npm_packages() -> Path | str:
    """A folder with ``node_modules``; or why there is none."""
    if (npm := shutil.which("npm")) is None:
        return "npm is not installed"

    def command(folder: Path) -> list[str]:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(LOCKS / name, folder)
        return [npm, "ci", "--prefix", str(folder), "--no-audit", "--no-fund", "--ignore-scripts"]

    return installed(LOCKS / "package-lock.json", command)


def installed(lock: Path, command: Callable[[Path], list[str]]) -> Path | str:
    """The folder that ``command`` fills from ``lock``, from the cache if it is there; or why it failed."""

    def fill(folder: Path) -> None:
        words = command(folder)
        subprocess.run(words, check=True, capture_output=True, text=True, timeout=INSTALL_SECONDS)

    name = f"{lock.name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}-{sys.version_info.minor}"
    try:
        return cached(name, fill)
    except subprocess.TimeoutExpired:
        return f"not installed within {INSTALL_SECONDS} s"
    except subprocess.CalledProcessError as error:
        return f"cannot be installed: {error.stderr.strip()[-300:]}"


@pytest.mark.timeout(INSTALL_SECONDS + PATIENCE)
@pytest.mark.parametrize("name", NAMES)
def test_a_package_works_with_the_server(name: str, server: Server, request: pytest.FixtureRequest) -> None:
    found = request.getfixturevalue("npm_packages" if name.endswith(".js") else "python_packages")
    if isinstance(found, str):
        pytest.skip(f"{name}: {found}")
    done = subprocess.run(
        [sys.executable, str(PROGRAM), server.url, name],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=found,
        env=CLEAN | {"PYTHONPATH": str(found)},
    )
    assert (done.returncode, "ok " in done.stdout, "skipped" in done.stdout) == (0, True, False), (
        done.stdout + done.stderr[-1000:]
    )
