from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.base.errors import InvalidRequestError
from gateway.cli.imports.dump_url import Download, DownloadError, Events
from tests.gateway.cli.imports.dump_server import FileServer, serving

DATA = os.urandom(300_000)


@pytest.fixture
def files() -> Iterator[FileServer]:
    with serving(FileServer(DATA)) as served:
        yield served


class Heard:
    """What a download told."""

    def __init__(self) -> None:
        self.sentences: list[str] = []
        self.positions: list[tuple[int, int]] = []
        self.events = Events(lambda have, total: self.positions.append((have, total)), self.sentences.append)


def fetch(files: FileServer, folder: Path, path: str = "/dump.xml") -> Heard:
    heard = Heard()
    found = Download(files.url + path, folder).fetch(heard.events)
    assert found.read_bytes() == files.data
    return heard


def broken(files: FileServer, folder: Path, after: int) -> None:
    files.cut_after = [after]
    with pytest.raises(DownloadError, match="run the same command to resume") as caught:
        fetch(files, folder)
    assert caught.value.status == 503


def test_a_download_in_one_go(files: FileServer, tmp_path: Path) -> None:
    heard = fetch(files, tmp_path)
    assert heard.positions[-1] == (len(DATA), len(DATA)) and heard.sentences == []
    assert files.requests == [(None, None)]
    assert fetch(files, tmp_path / "other", "/moved").sentences == []


@pytest.mark.parametrize("modified", ["", "Sat, 21 Nov 2026 10:00:00 GMT"])
def test_a_broken_download_goes_on(files: FileServer, tmp_path: Path, modified: str) -> None:
    if modified:
        files.etag, files.modified = 'W/"weak"', modified
    broken(files, tmp_path, 100_000)
    broken(files, tmp_path, 50_000)
    heard = fetch(files, tmp_path)
    version = modified or '"v1"'
    assert files.requests == [(None, None), ("bytes=100000-", version), ("bytes=150000-", version)]
    assert files.statuses == [200, 206, 206]
    assert heard.sentences == ["resuming the download at 150.0 kB"]
    assert heard.positions[0][0] > 150_000


def test_a_complete_file_is_not_downloaded_again(files: FileServer, tmp_path: Path) -> None:
    fetch(files, tmp_path)
    assert fetch(files, tmp_path).positions == []
    assert files.statuses == [200, 416]


def test_a_file_that_changed_in_between_starts_over(files: FileServer, tmp_path: Path) -> None:
    broken(files, tmp_path, 100_000)
    files.data, files.etag = os.urandom(200_000), '"v2"'
    heard = fetch(files, tmp_path)
    assert heard.sentences == ["the file has changed on the server since the download began: starting over"]
    fetch(files, tmp_path)
    files.data, files.etag = os.urandom(1000), '"v3"'
    assert "has changed" in fetch(files, tmp_path).sentences[0], "also when the old one was complete"


def test_a_server_without_ranges_starts_over(files: FileServer, tmp_path: Path) -> None:
    broken(files, tmp_path, 100_000)
    files.ignore_range = True
    assert fetch(files, tmp_path).sentences == ["the server cannot continue a download: starting over"]


def test_a_server_that_names_no_version_starts_over(files: FileServer, tmp_path: Path) -> None:
    files.etag = ""
    broken(files, tmp_path, 100_000)
    heard = fetch(files, tmp_path)
    assert "sent neither ETag nor Last-Modified" in heard.sentences[0]
    assert files.requests[-1] == (None, None)


def test_another_part_than_asked_for_is_an_error(files: FileServer, tmp_path: Path) -> None:
    broken(files, tmp_path, 100_000)
    files.wrong_part = True
    with pytest.raises(DownloadError, match="another range"):
        fetch(files, tmp_path)


@pytest.mark.parametrize(("status", "temporary"), [(404, False), (403, False), (429, True), (502, True)])
def test_refusals(files: FileServer, tmp_path: Path, status: int, temporary: bool) -> None:
    files.status = status
    with pytest.raises(DownloadError, match=f"answered {status}") as caught:
        fetch(files, tmp_path)
    assert (caught.value.status == 503) == temporary


def test_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="interrupted") as caught:
        Download("http://127.0.0.1:1/dump.xml", tmp_path).fetch(Heard().events)
    assert caught.value.status == 503
    with pytest.raises(InvalidRequestError, match="not a usable address"):
        Download("http://", tmp_path).fetch(Heard().events)


def test_removing_leaves_nothing(files: FileServer, tmp_path: Path) -> None:
    download = Download(files.url + "/dump.xml", tmp_path)
    download.fetch(Heard().events)
    download.remove()
    download.remove()
    assert list(tmp_path.iterdir()) == []
