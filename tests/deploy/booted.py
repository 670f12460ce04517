"""A machine run by systemd, for a test: systemd as process 1 of namespaces of its own, over this machine's files.

Nothing of it reaches this machine: its root is an overlay whose upper layer is memory, and everything in it ends
with it. The network alone is shared, so that a test can call the service.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.conftest import ROOT
from tests.deploy.debian import ENDS_WITH_THE_TESTS, need

BOOT_SECONDS = 90.0
# The Python of the tests may be built with a shared library that only its own place tells where to find.
LIBRARIES = "/opt/python/lib"
_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LD_LIBRARY_PATH": LIBRARIES}

# Shell, for root in a mount namespace of its own: a root to change at will, with Python and the packages of the
# tests. Variables: folder (empty), checkout, prefix (of Python), packages.
FRESH_ROOT = r"""
set -e
mount --make-rprivate /
mount -t tmpfs none "$folder"
mkdir "$folder"/{root,top,work,checkout,checkout-top,checkout-work}
mount -t overlay none -o "lowerdir=/,upperdir=$folder/top,workdir=$folder/work" "$folder/root"
mount -t overlay none -o "lowerdir=$checkout,upperdir=$folder/checkout-top,workdir=$folder/checkout-work" \
    "$folder/checkout"
cd "$folder/root"
mkdir -p opt/hearth opt/python opt/packages old proc sys run tmp dev
mount --bind "$prefix" opt/python
mount --bind "$packages" opt/packages
mount -t proc none proc; mount -t sysfs none sys
mount -t tmpfs none run; mount -t tmpfs none tmp; mount --rbind /dev dev
# Its own: systemd clears /dev/shm of a service's user (RemoveIPC=), and the upper layer may lie in this machine's.
mount -t tmpfs none dev/shm
"""

STAGE = (
    r"""
folder=$1 checkout=$2 prefix=$3 packages=$4 cgroup=$5 stage=$6
if [ "$stage" = 1 ]; then
    echo $$ > "$cgroup/cgroup.procs"
    exec unshare --cgroup bash "$0" "$folder" "$checkout" "$prefix" "$packages" "$cgroup" 2
fi
"""
    + FRESH_ROOT
    + r"""
mount --bind "$folder/checkout" opt/hearth
mount -t cgroup2 none sys/fs/cgroup

# What `make install` does, with the packages that are here already.
rm -rf opt/hearth/.venv
chroot . /opt/python/bin/python3 -m venv --without-pip /opt/hearth/.venv
printf '/opt/hearth\n/opt/packages\n' > "$(echo opt/hearth/.venv/lib/python3*/site-packages)/here.pth"
for command in hearth:gateway.cli.entry hearth-irc:clients.irc.cli; do
    printf '#!/opt/hearth/.venv/bin/python\nfrom %s import main\nmain()\n' "${command#*:}" \
        > "opt/hearth/.venv/bin/${command%:*}"
    chmod +x "opt/hearth/.venv/bin/${command%:*}"
done

# A machine that starts nothing by itself.
rm -rf etc/systemd/system usr/lib/systemd/system/*.wants etc/hearth var/lib/hearth
mkdir -p etc/systemd/system
cp -r "$folder.units"/. etc/systemd/system/
printf '[Unit]\nDefaultDependencies=no\n' > etc/systemd/system/boot.target
pivot_root . old
umount -l old
# As a container manager does: what systemd mounts for a unit, such as its credentials, is seen in all its namespaces.
mount --make-rshared /
exec env -i container=lxc PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --unit=boot.target --show-status=0
"""
)


class Booted:
    """A running machine."""

    def __init__(self, init: int) -> None:
        self._init = init

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as root on it."""
        enter = ["nsenter", "-t", str(self._init), "-m", "-p", "-C", "-i", "-u"]
        return subprocess.run(
            [*enter, *command], capture_output=True, text=True, timeout=60, env=_ENVIRONMENT
        )

    def shell(self, text: str) -> str:
        """Run lines of shell as root; what they print. Each must succeed."""
        done = self.run("bash", "-ec", text)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def show(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.run("systemctl", "show", unit, f"--property={name}", "--value").stdout.strip()


@contextmanager
def booted(folder: Path, drop_ins: Mapping[str, str]) -> Iterator[Booted]:
    """Boot with a drop-in for each of these units. Skips where namespaces are not to be had."""
    need("systemctl", "systemd")
    if os.geteuid() != 0:
        pytest.skip("only root can make the namespaces that systemd needs")
    cgroup = _make_cgroup(f"hearth-test-{os.getpid()}")
    (folder / "stage.sh").write_text(STAGE)
    (folder / "machine").mkdir()
    for unit, text in drop_ins.items():
        (folder / "machine.units" / f"{unit}.d").mkdir(parents=True)
        (folder / "machine.units" / f"{unit}.d" / "test.conf").write_text(text)
    namespaces = [
        *ENDS_WITH_THE_TESTS,
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount",
        "--uts",
        "--ipc",
    ]
    places = [folder / "machine", ROOT, sys.base_prefix, sysconfig.get_path("purelib"), cgroup]
    command = [*namespaces, "bash", str(folder / "stage.sh"), *map(str, places), "1"]
    try:
        with (
            (folder / "boot.log").open("w+") as log,
            subprocess.Popen(command, stdout=log, stderr=log) as process,
        ):
            try:
                yield _wait(process, log.name)
            finally:
                for each in psutil.Process(process.pid).children():
                    each.kill()  # process 1: the kernel ends the others with it
    finally:
        _remove_cgroup(cgroup)


def _wait(process: subprocess.Popen[bytes], log: str) -> Booted:
    deadline = time.monotonic() + BOOT_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        for child in psutil.Process(process.pid).children():
            machine = Booted(child.pid)
            if child.name() == "systemd" and machine.show("boot.target", "ActiveState") == "active":
                return machine
        time.sleep(0.1)
    words = Path(log).read_text()[-500:]
    return pytest.skip(f"systemd cannot be booted in namespaces here: {words}")


def _make_cgroup(name: str) -> Path:
    for line in Path("/proc/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        if kind == "cgroup2":
            made = Path(place) / name
            try:
                made.mkdir()
            except OSError as error:
                pytest.skip(f"no control group can be made: {error}")
            return made
    return pytest.skip("this machine has no version 2 control groups")


def _remove_cgroup(cgroup: Path) -> None:
    """A control group can be removed when all of its processes are gone, which takes a moment."""
    deadline = time.monotonic() + 10
    while cgroup.exists():
        try:
            for inner in sorted(cgroup.rglob("*/"), reverse=True):
                inner.rmdir()
            cgroup.rmdir()
        except OSError:
            assert time.monotonic() < deadline, f"{cgroup} is left behind"
            time.sleep(0.1)
