"""Programs of Debian packages that tests run: installed when this machine allows it, else the test is skipped."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

APT_SECONDS = 540
# In front of a command: the kernel ends it when the tests are killed and cannot end it themselves.
ENDS_WITH_THE_TESTS = ["setpriv", "--pdeathsig", "KILL"]

_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def need(program: str, package: str) -> str:
    """The path of ``program``; its ``package`` is installed first where root and apt are there."""
    if found := shutil.which(program, path=_PATH):
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        install = ("install", "-y", "-qq", "--no-install-recommends", package)
        # Lists may be missing or old on a fresh machine: only then are they fetched.
        if apt(*install) and not apt("update", "-qq"):
            apt(*install)
        if found := shutil.which(program, path=_PATH):
            return found
    return pytest.skip(f"the Debian package `{package}` is not here and cannot be installed")


def apt(*words: str, folder: Path | None = None) -> str:
    """Run ``apt-get`` in ``folder``; what went wrong, empty when nothing did.

    One at a time: of two test processes that install something, apt itself would send the second away.
    """
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=300", *words]
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    lock = Path(tempfile.gettempdir()) / f"hearth-tests-apt-{os.geteuid()}.lock"
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        done = subprocess.run(
            command, capture_output=True, text=True, env=quiet, cwd=folder, timeout=APT_SECONDS
        )
    return f"`{' '.join(command)}` failed: {done.stderr.strip()[-300:]}" if done.returncode else ""
