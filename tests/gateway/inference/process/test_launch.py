"""The child's command line and environment, and refused starts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from gateway.base.cores import usable_cores
from gateway.base.errors import ModelUnavailableError
from gateway.config.settings import ModelSettings
from gateway.inference.host import HostInference
from gateway.inference.process.launch import REMEMBER_SECONDS, Launcher, child_environment, host_command
from gateway.models.catalog import ResolvedModel
from model_host.protocol import PROTOCOL_VERSION
from tests.gateway.inference.helpers import MakeHost, collect

SETTINGS = ModelSettings(memory_headroom_bytes=0)


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_command_names_every_option(model: ResolvedModel) -> None:
    settings = ModelSettings(
        parallel=3, chunk=64, drafts=4, threads=2, max_waiting=7, snapshot_bytes=9, snapshot_after_seconds=1.5
    )
    command = host_command(model, settings, Path("/data/snapshots"))
    assert command[:3] == (sys.executable, "-m", "model_host")
    options = dict(zip(command[3::2], command[4::2], strict=True))
    assert options == {
        "--model": str(model.path),
        "--context": "2048",
        "--parallel": "3",
        "--chunk": "64",
        "--drafts": "4",
        "--threads": "2",
        "--cores": str(usable_cores()),
        "--max-waiting": "7",
        "--parent": str(os.getpid()),
        "--snapshots": "/data/snapshots",
        "--snapshot-bytes": "9",
        "--shared-snapshot-bytes": str(1 << 30),
        "--snapshot-after": "1.5",
    }


def test_the_package_is_found_from_any_folder_and_a_stray_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "model_host.py").write_text("raise SystemExit('the wrong one')")
    script = "import model_host.protocol as p; print(p.PROTOCOL_VERSION)"
    environment = child_environment(os.environ)
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{PROTOCOL_VERSION}\n", "")


async def test_the_child_sees_no_secret(
    make_host: MakeHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = ["HF_TOKEN", "HEARTH_SERVER__KEY", "OPENAI_API_KEY", "AWS_SECRET_ACCESS_KEY", "PASSWORD"]
    for name in secrets:
        monkeypatch.setenv(name, "s3cr3t")
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("HEARTH_HOST_LOG", "debug")
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")
    await make_host("--environment", tmp_path / "env.json").warm()
    seen = json.loads((tmp_path / "env.json").read_text())
    assert "s3cr3t" not in seen.values()
    assert seen["OMP_NUM_THREADS"] == "2"
    assert seen["HEARTH_HOST_LOG"] == "debug"
    assert seen["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"
    allowed = {"PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "LD_LIBRARY_PATH", "GLIBC_TUNABLES"}
    own = {"PYTHONPATH", "PYTHONSAFEPATH"}
    assert {n for n in seen if not n.startswith(("OMP_", "GOMP_", "HEARTH_HOST_"))} <= allowed | own


async def test_a_missing_file_is_named_and_picked_up_once_pulled(
    make_host: MakeHost, model: ResolvedModel
) -> None:
    model.path.unlink()
    host = make_host()
    with pytest.raises(ModelUnavailableError) as caught:
        await host.warm()
    assert str(model.path) in caught.value.message
    assert "hearth pull fake" in caught.value.message
    assert caught.value.code == "model_missing"
    assert host.health().state == "stopped"
    assert host.health().problem == caught.value.message
    model.path.write_bytes(b"GGUF")
    await host.warm()
    assert host.health().state == "ready"
    assert host.health().problem is None


async def test_too_little_memory_refuses_the_start(make_host: MakeHost, tmp_path: Path) -> None:
    host = make_host("--starts", tmp_path / "starts", memory_headroom_bytes=2**60)
    with pytest.raises(ModelUnavailableError, match="hearth doctor") as caught:
        await collect(host)
    assert caught.value.code == "out_of_memory"
    assert not (tmp_path / "starts").exists()


async def test_a_program_that_cannot_be_run_is_one_clear_error(model: ResolvedModel) -> None:
    host = HostInference(model, SETTINGS, command=["/nonexistent/host"])
    with pytest.raises(ModelUnavailableError, match="/nonexistent/host"):
        await host.warm()
    await host.close()


@pytest.mark.parametrize("code", ["model_missing", "model_corrupt", "model_unsupported", "out_of_memory"])
async def test_a_load_failure_is_remembered_and_is_no_crash(
    make_host: MakeHost, tmp_path: Path, code: str
) -> None:
    host = make_host("--fail-load", code, "--starts", tmp_path / "starts")
    for _ in range(4):
        with pytest.raises(ModelUnavailableError, match="the fake host was told to fail") as caught:
            await collect(host)
        assert caught.value.code == code
        assert caught.value.retry_after is None
    assert len((tmp_path / "starts").read_text().split()) == 1
    assert host.health().state == "stopped"
    assert host.health().restarts == 0


def test_a_failed_file_is_tried_again_when_it_changes_or_after_a_while(model: ResolvedModel) -> None:
    clock = Clock()
    launcher = Launcher(model, SETTINGS, ["true"], clock=clock)
    failure = ModelUnavailableError("corrupt", code="model_corrupt")
    launcher.remember(launcher.plan(), failure)
    with pytest.raises(ModelUnavailableError, match="corrupt"):
        launcher.plan()
    model.path.write_bytes(b"GGUF, now whole")
    launcher.remember(launcher.plan(), failure)
    with pytest.raises(ModelUnavailableError, match="corrupt"):
        launcher.plan()
    clock.now += REMEMBER_SECONDS
    launcher.plan()


def test_a_check_tells_what_a_start_would_fail_with(model: ResolvedModel) -> None:
    clock = Clock()
    launcher = Launcher(model, SETTINGS, ["true"], clock=clock)
    launcher.check()
    launcher.remember(launcher.plan(), ModelUnavailableError("damaged", code="model_corrupt"))
    clock.now += 100 * REMEMBER_SECONDS
    with pytest.raises(ModelUnavailableError, match="damaged"):
        launcher.check()
    launcher.remember(launcher.plan(), ModelUnavailableError("too large", code="out_of_memory"))
    launcher.check()  # there may be room by now
    model.path.write_bytes(b"root:x:0:0:")
    with pytest.raises(ModelUnavailableError, match=r"is not a GGUF file.*`model\.name`") as caught:
        launcher.check()
    assert caught.value.code == "model_corrupt"
    with pytest.raises(ModelUnavailableError, match="is not a GGUF file"):
        launcher.plan()
    model.path.write_bytes(b"GGUF")
    with pytest.raises(ModelUnavailableError, match="needs about"):
        Launcher(model, ModelSettings(memory_headroom_bytes=2**60), ["true"]).check()
    model.path.unlink()
    with pytest.raises(ModelUnavailableError, match="cannot be read"):
        launcher.check()


def test_the_model_is_resolved_at_every_start(model: ResolvedModel) -> None:
    names = iter(["first", "second"])
    launcher = Launcher(lambda: msgspec.structs.replace(model, name=next(names)), SETTINGS, ["true"])
    assert [launcher.plan().model.name, launcher.plan().model.name] == ["first", "second"]
