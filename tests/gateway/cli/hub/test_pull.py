"""`hearth pull` against a hub on loopback, through real processes."""

from __future__ import annotations

import fcntl
import os
import pty
import shutil
import signal
import struct
import subprocess
import termios
import threading
from pathlib import Path

import httpx2
import pytest
from huggingface_hub.utils import hf_raise_for_status

from gateway.cli.common.surroundings import exit_status as status_of
from gateway.cli.hub import hub as downloads
from gateway.cli.hub.client import PullError, hub_errors
from tests.gateway.cli.conftest import GGUF, Run
from tests.gateway.cli.hub.hub_server import COMMIT, Hub
from tests.waiting import PATIENCE, eventually

NAME = "owner/repo:model.gguf"
KEY = "owner/repo/model.gguf"
DOWNLOAD_CHUNK = downloads.constants.DOWNLOAD_CHUNK_SIZE


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "data/models/owner/repo/model.gguf"


def partials(target: Path) -> list[Path]:
    return list(target.parent.glob(".*.partial"))


def test_a_file_arrives_checked_and_says_how_to_use_it(hearth: Run, hub: Hub, target: Path) -> None:
    done = hearth("pull", NAME, HF_ENDPOINT=hub.url)
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == GGUF
    assert "sha256 checked" in done.stdout
    assert f"hearth start --model {NAME}" in done.stdout
    assert partials(target) == []
    again = hearth("pull", NAME, HF_ENDPOINT=hub.url)
    assert "complete and up to date" in again.stdout
    assert len(hub.ranges) == 1
    assert NAME in hearth("models").stdout


def test_a_file_in_a_folder_of_the_repository(hearth: Run, hub: Hub, tmp_path: Path) -> None:
    assert hearth("pull", "owner/repo:sub/other.gguf", HF_ENDPOINT=hub.url).returncode == 0
    assert (tmp_path / "data/models/owner/repo/sub/other.gguf").read_bytes() == b"GGUF other"


def test_a_cut_connection_is_taken_up_again_within_the_run(hearth: Run, hub: Hub, target: Path) -> None:
    hub.cut_after = [300_000]
    done = hearth("pull", NAME, HF_ENDPOINT=hub.url)
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == GGUF
    assert hub.ranges[0] is None
    assert hub.ranges[1] is not None and hub.ranges[1] != "bytes=0-"


def test_an_interrupted_pull_keeps_its_bytes_and_goes_on(
    command: list[str], environment: dict[str, str], hearth: Run, hub: Hub, target: Path
) -> None:
    hub.slow = threading.Event()
    process = subprocess.Popen(
        [*command, "pull", NAME],
        env={**environment, "HF_ENDPOINT": hub.url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # All that the hub sends before it waits: interrupted earlier, Python may lose the KeyboardInterrupt in a finalizer.
    sent = len(GGUF) // 2 // DOWNLOAD_CHUNK * DOWNLOAD_CHUNK
    eventually(lambda: partials(target) and partials(target)[0].stat().st_size == sent, "nothing arrives")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "run it again to resume" in errors
    assert "Traceback" not in errors
    have = partials(target)[0].stat().st_size
    assert not target.exists()
    hub.slow.set()
    hub.slow = None
    done = hearth("pull", NAME, HF_ENDPOINT=hub.url)
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == GGUF
    assert hub.ranges[-1] == f"bytes={have}-"
    assert have > 0
    assert "here already" in done.stdout


def test_a_server_that_ignores_ranges_does_not_corrupt_the_file(hearth: Run, hub: Hub, target: Path) -> None:
    hub.cut_after = [300_000]
    hub.ignore_range = True
    done = hearth("pull", NAME, HF_ENDPOINT=hub.url)
    assert done.returncode == 0, done.stderr
    assert target.read_bytes() == GGUF


def test_a_wrong_checksum_removes_the_file(hearth: Run, hub: Hub, target: Path) -> None:
    hub.checksums[KEY] = "0" * 64
    done = hearth("pull", NAME, HF_ENDPOINT=hub.url)
    assert done.returncode == 1
    assert "wrong checksum and was removed" in done.stderr
    assert not target.exists()
    assert partials(target) == []


def test_a_damaged_installed_file_is_noticed_and_replaced(hearth: Run, hub: Hub, target: Path) -> None:
    target.parent.mkdir(parents=True)
    target.write_bytes(GGUF[:-1] + b"!")
    done = hearth("pull", NAME, HF_ENDPOINT=hub.url)
    assert "differs from the hub's" in done.stdout
    assert target.read_bytes() == GGUF


def test_a_missing_file_is_one_clear_line(hearth: Run, hub: Hub, target: Path) -> None:
    done = hearth("pull", "owner/repo:gone.gguf", HF_ENDPOINT=hub.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no file gone.gguf in owner/repo" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not target.parent.exists()


def test_a_refused_token_is_one_clear_line(hearth: Run, hub: Hub) -> None:
    hub.refusals[KEY] = (401, "GatedRepo")
    done = hearth("pull", NAME, HF_ENDPOINT=hub.url)
    assert (done.returncode, done.stdout) == (1, "")
    assert "owner/repo is gated: accept its licence at" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("status", "code", "exit_status", "message"),
    [
        (404, "", 1, "there is no file model.gguf in owner/repo"),
        (404, "RepoNotFound", 1, "there is no repository owner/repo"),
        (401, "RepoNotFound", 1, "no access to owner/repo"),
        (401, "", 1, "set HF_TOKEN"),
        (403, "GatedRepo", 1, "owner/repo is gated"),
        (403, "", 1, "no access to owner/repo"),
        (429, "", 75, "answered 429"),
        (500, "", 75, "answered 500"),
    ],
)
def test_each_refusal_says_what_to_do(status: int, code: str, exit_status: int, message: str) -> None:
    request = httpx2.Request("HEAD", "https://hub.example/owner/repo/resolve/main/model.gguf")
    response = httpx2.Response(status, request=request, headers={"X-Error-Code": code} if code else {})
    with pytest.raises(PullError, match=message) as error, hub_errors("owner/repo", "model.gguf"):
        hf_raise_for_status(response)
    assert status_of(error.value) == exit_status


def test_the_token_is_sent(hearth: Run, hub: Hub) -> None:
    assert hearth("pull", NAME, HF_ENDPOINT=hub.url, HF_TOKEN="hf_secret").returncode == 0
    assert "Bearer hf_secret" in hub.tokens


def test_offline_is_an_error_unless_the_file_is_here(hearth: Run, hub: Hub, target: Path) -> None:
    done = hearth("pull", NAME, HF_ENDPOINT=hub.url, HF_HUB_OFFLINE="1")
    assert done.returncode == 1
    assert "HF_HUB_OFFLINE is set and owner/repo/model.gguf is not on this machine" in done.stderr
    assert hub.tokens == []
    assert hearth("pull", NAME, HF_ENDPOINT=hub.url).returncode == 0
    kept = hearth("pull", NAME, HF_ENDPOINT=hub.url, HF_HUB_OFFLINE="1")
    assert (kept.returncode, "is here (not compared" in kept.stdout) == (0, True)


def test_an_unreachable_hub_is_temporary(hearth: Run, target: Path) -> None:
    done = hearth("pull", NAME, HF_ENDPOINT="http://127.0.0.1:1")
    assert done.returncode == 75
    assert "the connection to http://127.0.0.1:1 failed" in done.stderr
    assert "`hearth pull qwen2.5-coder-1.5b` gets its model" in done.stderr


def test_a_file_in_the_hubs_own_cache_is_used(hearth: Run, hub: Hub, tmp_path: Path, target: Path) -> None:
    cache = tmp_path / "hf/hub/models--owner--repo"
    blob = cache / "blobs" / hub.sha256(KEY)
    snapshot = cache / "snapshots" / COMMIT
    for folder in (blob.parent, snapshot, cache / "refs"):
        folder.mkdir(parents=True)
    blob.write_bytes(GGUF)
    (snapshot / "model.gguf").symlink_to(blob)
    (cache / "refs/main").write_text(COMMIT)
    offline = hearth("pull", NAME, HF_ENDPOINT=hub.url, HF_HUB_OFFLINE="1")
    assert (offline.returncode, target.read_bytes()) == (0, GGUF), offline.stderr
    target.unlink()
    assert hearth("pull", NAME, HF_ENDPOINT=hub.url).returncode == 0
    assert target.read_bytes() == GGUF
    assert hub.ranges == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gemma4", "did you mean gemma-4-e"),
        ("owner/repo:../../x.gguf", "unknown model"),
        ("owner/repo:README.md", "not a .gguf file"),
        ("nonsense", "use a name from `hearth models`"),
    ],
)
def test_a_wrong_name_is_refused(hearth: Run, name: str, message: str) -> None:
    done = hearth("pull", name)
    assert done.returncode == 1
    assert message in done.stderr


def test_the_built_in_model_needs_no_download(hearth: Run) -> None:
    assert "comes with hearth" in hearth("pull", "hearth-demo").stdout


def test_a_terminal_shows_progress(
    command: list[str], environment: dict[str, str], hub: Hub, target: Path
) -> None:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    process = subprocess.Popen(
        [*command, "pull", NAME], env={**environment, "HF_ENDPOINT": hub.url}, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # Linux ends a terminal's output with EIO
        pass
    os.close(ours)
    assert process.wait(PATIENCE) == 0
    assert b"model.gguf" in shown
    assert b"100%" in shown


def test_too_little_disk_is_said_before_the_first_byte(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = downloads.RemoteFile("owner/repo", "model.gguf", hub.url, "e", 10**9, None, COMMIT)
    free = shutil.disk_usage(tmp_path)._replace(free=10**8)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: free)
    with pytest.raises(PullError, match=r"1\.0 GB are still to come, .* has 100\.0 MB free"):
        remote.make_room(tmp_path / "model.gguf")


def test_a_full_disk_says_so_and_can_go_on() -> None:

    with (
        pytest.raises(PullError, match="the disk is full; make room, then run the same command"),
        hub_errors("a/b", "f"),
    ):
        raise OSError(28, "No space left on device")


def test_a_second_pull_of_the_same_file_is_refused(tmp_path: Path) -> None:
    source, target = tmp_path / "a-checksum", tmp_path / "x.gguf"
    with (
        downloads.locked(downloads.partial_path(target, source.name), PullError("")),
        pytest.raises(PullError, match="another `hearth pull`"),
    ):
        downloads.copy_cached(source, target)
