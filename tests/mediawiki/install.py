"""Install PHP and Debian's MediaWiki package where possible.

The package is unpacked into a cache folder and not installed: its dependencies would start a web server.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from tests.caching import cached
from tests.deploy.debian import APT_SECONDS, apt

PHP_PACKAGES = ("php-cli", "php-intl", "php-mbstring", "php-sqlite3", "php-xml")
WIKI_PACKAGES = ("mediawiki", "mediawiki-classes")
INSTALLED = Path("/usr/share/mediawiki")

_MODULES = frozenset({"intl", "mbstring", "pdo_sqlite", "dom", "xml"})


class MissingPackagesError(Exception):
    """A missing package cannot be installed here; the message says why."""


def install_php() -> str:
    """Path of a PHP that MediaWiki runs on."""
    if not _php_is_complete():
        packages = ", ".join(PHP_PACKAGES)
        if os.geteuid() != 0 or shutil.which("apt-get") is None:
            raise MissingPackagesError(
                f"needs the Debian packages {packages}; installing takes root and apt-get"
            )
        _apt("update", "-qq")
        _apt("install", "-y", "-qq", "--no-install-recommends", *PHP_PACKAGES)
        if not _php_is_complete():
            raise MissingPackagesError(f"PHP is not complete in spite of the packages {packages}")
    php = shutil.which("php")
    assert php is not None
    return php


def install_mediawiki() -> Path:
    """Folder with ``api.php`` and ``maintenance``."""
    if (INSTALLED / "api.php").is_file():
        return INSTALLED
    return cached("mediawiki", _unpack) / INSTALLED.relative_to("/")


def _unpack(target: Path) -> None:
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise MissingPackagesError(f"needs the Debian package mediawiki; getting it takes {program}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # apt downloads as a user of its own
        try:
            _apt("download", "-qq", *WIKI_PACKAGES, folder=folder)
        except MissingPackagesError:
            if os.geteuid() != 0:
                raise
            _apt("update", "-qq")
            _apt("download", "-qq", *WIKI_PACKAGES, folder=folder)
        for package in folder.glob("*.deb"):
            subprocess.run(["dpkg-deb", "-x", str(package), str(target)], check=True, timeout=APT_SECONDS)


def _php_is_complete() -> bool:
    php = shutil.which("php")
    if php is None:
        return False
    done = subprocess.run([php, "-m"], capture_output=True, text=True, timeout=60, check=False)
    return {line.strip().lower() for line in done.stdout.splitlines()} >= _MODULES


def _apt(*words: str, folder: Path | None = None) -> None:
    if problem := apt(*words, folder=folder):
        raise MissingPackagesError(problem)
