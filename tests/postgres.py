"""A PostgreSQL server of Debian's package `postgresql`, in a temporary folder."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

_PACKAGES = Path("/usr/lib/postgresql")
MISSING = "needs the packages postgresql and, where tests run as root, its user `postgres`"


def binaries() -> Path | None:
    """The folder of the newest installed server's programs."""
    found = sorted(_PACKAGES.glob("*/bin/initdb"))
    return found[-1].parent if found else None


class Server:
    """A server that listens on a socket in its folder only."""

    def __init__(self, *options: str) -> None:
        bin_folder = binaries()
        if bin_folder is None:
            pytest.skip(MISSING)
        self._bin = bin_folder
        # The server refuses to run as root.
        self._as = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        # Its socket's path must be short.
        self._folder = Path(tempfile.mkdtemp(prefix="hearth-pg-"))
        if self._as:
            shutil.chown(self._folder, "postgres")
        self._options = ("listen_addresses=", f"unix_socket_directories={self._folder}", *options)
        self._numbers = itertools.count(1)
        self.template = "template0"
        initdb = [
            "initdb",
            "-D",
            self._data,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--no-locale",
            "-N",
        ]
        self._run(*initdb)
        self.start()

    @property
    def _data(self) -> str:
        return str(self._folder / "data")

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def database(self) -> str:
        """Create a database as :attr:`template` is; returns its URL."""
        name = f"db{next(self._numbers)}"
        self.sql("postgres", f"CREATE DATABASE {name} TEMPLATE {self.template}")
        return self.url(name)

    def sql(self, database: str, statement: str) -> str:
        done = subprocess.run(
            ["psql", "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", statement, self.url(database)],
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout.strip()

    def start(self) -> None:
        options = " ".join(f"-c {option}" for option in self._options)
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", self._data, "-w", "-l", log, "-o", options, "start")

    def stop(self, mode: str) -> None:
        """``mode`` is fast, or immediate: as a crash."""
        self._run("pg_ctl", "-D", self._data, "-w", "-m", mode, "stop")

    def remove(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self._folder)

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*self._as, str(self._bin / program), *arguments],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )
