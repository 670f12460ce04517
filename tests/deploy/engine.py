"""Debian's podman and buildah in a folder of their own, and base images made on this machine: no registry is asked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.deploy.debian import ENDS_WITH_THE_TESTS, need
from tests.waiting import eventually

# Limits of the system's configuration may be over what this account may set.
_CONFIGURATION = "[containers]\ndefault_ulimits = []\n"
_WRAPPER = '#!/bin/sh\nCONTAINERS_CONF={folder}/containers.conf exec {command} "$@"\n'


class Engine:
    """``podman`` is a program that works on this folder alone: for those that call podman themselves.

    Its bridges and packet filters are in a network namespace of their own, which ``inside`` enters.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = ["--root", f"{folder}/store", "--runroot", f"{folder}/run", "--storage-driver"]
        self._buildah = need("buildah", "buildah")
        self._driver = "overlay" if self._works("overlay") else "vfs"
        (folder / "containers.conf").write_text(_CONFIGURATION)
        (folder / "networks").mkdir()
        self._holder = subprocess.Popen([*ENDS_WITH_THE_TESTS, "unshare", "--net", "sleep", "infinity"])
        self.inside = ["nsenter", "-t", str(self._holder.pid), "-n"]
        own, holder = Path("/proc/self/ns/net"), Path(f"/proc/{self._holder.pid}/ns/net")
        eventually(lambda: holder.readlink() != own.readlink(), "no network namespace can be made")
        subprocess.run([*self.inside, need("ip", "iproute2"), "link", "set", "lo", "up"], check=True)
        command = [
            *self.inside,
            need("podman", "podman"),
            *self._store,
            self._driver,
            "--runtime",
            need("runc", "runc"),
        ]
        command += ["--cgroup-manager", "cgroupfs", "--events-backend", "file", "--tmpdir", f"{folder}/tmp"]
        command += ["--network-config-dir", f"{folder}/networks"]
        self.podman = folder / "podman"
        self.podman.write_text(_WRAPPER.format(folder=folder, command=" ".join(command)))
        self.podman.chmod(0o755)

    def _works(self, driver: str) -> bool:
        command = [self._buildah, *self._store, driver, "info"]
        return subprocess.run(command, capture_output=True).returncode == 0

    def run(self, *arguments: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
        """Run podman."""
        return subprocess.run(
            [self.podman, *arguments],
            capture_output=True,
            text=True,
            timeout=seconds,
            stdin=subprocess.DEVNULL,
        )

    def build(self, *arguments: str, seconds: float = 600) -> str:
        """Run buildah, without any privilege that a mount namespace does not give; what it prints."""
        command = [self._buildah, *self._store, self._driver, *arguments]
        environment = os.environ | {"BUILDAH_ISOLATION": "chroot"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=environment)
        assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
        return done.stdout.strip()

    def base(self, name: str, suite: str) -> None:
        """An image of Debian's smallest system, with this machine's ways to its package indexes. Skips without them."""
        root = self.folder / "base"
        command = [
            need("debootstrap", "debootstrap"),
            "--variant=minbase",
            "--include=ca-certificates",
            suite,
        ]
        done = subprocess.run([*command, root, mirror()], capture_output=True, text=True, timeout=300)
        if done.returncode:
            pytest.skip(f"debootstrap cannot make a system here: {done.stdout[-300:]}")
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs/ca-certificates.crt")
        container = self.build("from", "scratch")
        self.build("add", "-q", container, str(root), "/")
        settings = {"PIP_CERT": "/etc/ssl/certs/ca-certificates.crt"}
        if index := pip_setting("index-url"):
            settings["PIP_INDEX_URL"] = index
        variables = [word for key, value in settings.items() for word in ("--env", f"{key}={value}")]
        self.build("config", *variables, container)
        self.build("commit", "-q", "--rm", container, name)
        shutil.rmtree(root)

    def close(self) -> None:
        """End and remove everything: containers, mounts, and with their namespace the networks."""
        self.run("rm", "-f", "-a", "-t", "5")
        self._holder.kill()
        self._holder.wait()
        places = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in reversed([place for place in places if place.startswith(f"{self.folder}/")]):
            subprocess.run(["umount", "-l", place], check=True)


@contextmanager
def engine() -> Iterator[Engine]:
    """Podman and buildah with nothing in their store. Skips where they are not to be had."""
    if os.geteuid() != 0:
        pytest.skip("only root can run containers with networks here")
    # Podman's own limits on paths are short.
    with TemporaryDirectory(prefix="engine") as folder:
        made = Engine(Path(folder))
        try:
            yield made
        finally:
            made.close()


def mirror() -> str:
    """Where this machine gets Debian's packages from."""
    command = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Component: main"]
    sites = subprocess.run(command, capture_output=True, text=True).stdout.split()
    return sites[0] if sites else "http://deb.debian.org/debian"


def pip_setting(name: str) -> str:
    """What pip is configured with on this machine, "" for nothing."""
    command = [sys.executable, "-m", "pip", "config", "get", f"global.{name}"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()
