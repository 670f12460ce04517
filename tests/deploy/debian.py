"""Programs of Debian packages that tests run: installed when this machine allows it, else the test is skipped."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

_PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def need(program: str, package: str) -> str:
    """The path of ``program``; its ``package`` is installed first where root and apt are there."""
    if found := shutil.which(program, path=_PATH):
        return found
    if os.geteuid() == 0 and shutil.which("apt-get"):
        # Lists may be missing or old on a fresh machine: only then are they fetched.
        if not _apt("install", package):
            _apt("update")
            _apt("install", package)
        if found := shutil.which(program, path=_PATH):
            return found
    return pytest.skip(f"the Debian package `{package}` is not here and cannot be installed")


def _apt(verb: str, *packages: str) -> bool:
    command = ["apt-get", "-y", "-q", "--no-install-recommends", verb, *packages]
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(command, capture_output=True, env=quiet, timeout=100).returncode == 0
