"""A wheel of llama.cpp that was compiled elsewhere is found by PIP_FIND_LINKS."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from deploy.install import COMPILED, LOG, ROOT, InstallError, install_llama, installed, pinned

LOCK = ROOT / "requirements.lock"


def make_wheel(folder: Path, platform: str) -> None:
    """A wheel of the pinned version without content."""
    version = pinned(LOCK, COMPILED)
    about = f"llama_cpp_python-{version}.dist-info"
    tags = f"py3-none-{platform}"
    with zipfile.ZipFile(folder / f"llama_cpp_python-{version}-{tags}.whl", "w") as made:
        made.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {COMPILED}\nVersion: {version}\n")
        made.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tags}\n")
        made.writestr(f"{about}/RECORD", "")


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    return folder


@pytest.fixture
def python(empty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Python of a copy of it, without an index."""
    shutil.copytree(empty, tmp_path / "venv", symlinks=True)
    LOG.parent.mkdir(exist_ok=True)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path / 'absent'} {tmp_path}")
    return tmp_path / "venv" / "bin" / "python"


def test_a_wheel_that_fits_is_installed(python: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path, "any")
    make_wheel(tmp_path, "aix_7_1_ppc")
    install_llama(python, LOCK)
    assert installed(python, LOCK, COMPILED)


def test_without_one_that_fits_it_is_compiled(python: Path, tmp_path: Path) -> None:
    make_wheel(tmp_path, "aix_7_1_ppc")
    with pytest.raises(InstallError, match="--require-hashes"):  # there is no index to get the sources from
        install_llama(python, LOCK)
    assert not installed(python, LOCK, COMPILED)
