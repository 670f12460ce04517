"""The wheel carries what the program needs and runs from an empty directory."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "-w", str(target), str(ROOT)], check=True, capture_output=True, cwd=target)
    (built,) = target.glob("hearth-*.whl")
    return built


def test_the_wheel_is_complete(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    bundled = {
        f"gateway/_bundled/{file.relative_to(ROOT)}"
        for pattern in ("prompts/*.md", "models/catalog.toml", "models/demo/hearth-demo.gguf")
        for file in ROOT.glob(pattern)
    }
    assert len(bundled) >= 7
    packaged = {
        str(file.relative_to(ROOT))
        for pattern in ("gateway/wiki/sample/*.wiki", "gateway/store/migrations/*.sql", "model_host/*.py")
        for file in ROOT.glob(pattern)
    }
    assert len(packaged) > 60
    assert (bundled | packaged) - names == set()
    assert not [name for name in names if name.startswith(("tests/", "models/", "benchmarks/"))]


def test_the_wheel_runs_from_an_empty_directory(wheel: Path, tmp_path: Path) -> None:
    site, empty = tmp_path / "site", tmp_path / "empty"
    empty.mkdir()
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    script = (
        "from pathlib import Path\n"
        "import gateway\n"
        "from gateway.catalog import resolve_model\n"
        "from gateway.config import load_settings\n"
        "from gateway.prompts import load_prompts\n"
        "from gateway.resources import sample_wiki\n"
        f"assert gateway.__file__.startswith({str(site)!r}), gateway.__file__\n"
        "print(len(load_prompts().names()), len(list(sample_wiki().glob('*.wiki'))))\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HEARTH_")} | {"PYTHONPATH": str(site)}
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=empty, env=environment, check=True, capture_output=True, text=True
    )
    prompts, pages = map(int, run.stdout.split())
    assert prompts >= 5
    assert pages >= 60
    version = subprocess.run(
        [sys.executable, "-m", "gateway.cli.main", "--version"],
        cwd=empty,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "0.1.0" in version.stdout
