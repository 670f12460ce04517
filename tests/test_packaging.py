"""The wheel carries everything, and runs from an empty directory with no checkout near it."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.end_to_end.server import Server

ROOT = Path(__file__).resolve().parent.parent
DEMO_MODEL = ROOT / "models" / "demo" / "hearth-demo.gguf"

USE_RESOURCES = """
import pathlib, sys
import gateway, model_host
from gateway.models.catalog import Catalog
from gateway.models.prompts import load_prompts
from gateway.base.resources import sample_wiki
from gateway.store.migrate import migrations

target = pathlib.Path(sys.argv[1])
for package in (gateway, model_host):
    assert pathlib.Path(package.__file__).is_relative_to(target), package.__file__
assert Catalog.load().get("hearth-demo")
assert migrations() and load_prompts()
assert len(list(sample_wiki().glob("*.wiki"))) >= 60
assert sample_wiki().is_relative_to(target)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built wheel."""
    folder = tmp_path_factory.mktemp("wheel")
    _run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], ROOT)
    (built,) = folder.glob("hearth-*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel's contents as pip lays them out."""
    target = tmp_path_factory.mktemp("site")
    _run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "-q",
            "--no-deps",
            "--no-index",
            "--target",
            str(target),
            str(wheel),
        ],
        target,
    )
    return target


def test_wheel_contents(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        "gateway/py.typed",
        "model_host/py.typed",
        "clients/irc/py.typed",
        "gateway/_bundled/models/catalog.toml",
    }
    packages = ("gateway/", "model_host/", "clients/")
    expected |= {f"gateway/_bundled/prompts/{path.name}" for path in (ROOT / "prompts").glob("*.md")}
    for pattern in (
        "gateway/store/migrations/*.sql",
        "gateway/wiki/sample/*.wiki",
        "gateway/web/*",
        "*/*.py",
        "clients/*/*.py",
    ):
        found = {path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern)}
        expected |= {name for name in found if name.startswith(packages)}
    if DEMO_MODEL.exists():
        expected.add("gateway/_bundled/models/demo/hearth-demo.gguf")
    assert expected - names == set()
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    strangers = {name for name in names if not name.startswith((*packages, "hearth-"))}
    assert strangers == set()
    assert not any("__pycache__" in name for name in names)


def test_version_and_resources_from_an_empty_directory(installed: Path, tmp_path: Path) -> None:
    version = _run([sys.executable, "-m", "gateway.cli.main", "--version"], tmp_path, installed)
    assert version.startswith("hearth ")
    client = _run([sys.executable, "-m", "clients.irc.cli", "--version"], tmp_path, installed)
    assert client.startswith("hearth-irc")
    _run([sys.executable, "-c", USE_RESOURCES, str(installed)], tmp_path, installed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not DEMO_MODEL.exists(), reason="this checkout has no demo model")
def test_installed_program_answers(installed: Path, tmp_path: Path, demo_model: str) -> None:
    server = Server(tmp_path / "data", demo_model, env={"PYTHONPATH": str(installed)})
    try:
        reply = server.client.post("/ask", json={"question": "Who created Befunge?"})
        assert reply.status_code == 200, reply.text
        assert reply.json()["answer"]
        assert "/assets/app.js" in server.client.get("/").text
        assert server.client.get("/assets/app.js").status_code == 200
        command = server.children()[0].cmdline()
        assert str(installed / "gateway/_bundled/models/demo/hearth-demo.gguf") in command
    finally:
        server.stop()


def _run(command: list[str], folder: Path, python_path: Path | None = None) -> str:
    """Standard output of a command; its error output in the failure."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    if python_path is not None:
        environment |= {"PYTHONPATH": str(python_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
