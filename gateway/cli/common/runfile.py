"""Which server owns a data directory: a lock held while it runs, and a file that says where it listens.

The lock is the truth, because the kernel drops it however the process ends; ``run.json`` of a server that
was killed is stale, and nobody believes it without the lock.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from gateway.base.errors import ConfigurationError, HearthError
from gateway.base.private import make_private

_LOCK = "run.lock"
_RUN = "run.json"
# `hearth status` holds the lock for an instant to see whether it is free; a start outwaits that.
_RETRY_SECONDS = 0.5


class Running(Struct, frozen=True):
    """A server that is alive. ``url`` is None until it listens."""

    pid: int
    url: str | None = None


class Claim:
    """This process's hold on a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._file = data_dir / _RUN

    def publish(self, url: str) -> None:
        """Say where this process listens."""
        temporary = self._file.with_suffix(".json.new")
        temporary.write_bytes(msgspec.json.encode(Running(os.getpid(), url)))
        temporary.replace(self._file)

    def withdraw(self) -> None:
        """Take back what :meth:`publish` said."""
        self._file.unlink(missing_ok=True)


@contextmanager
def claim(data_dir: Path) -> Iterator[Claim]:
    """Own ``data_dir`` (created if missing, mode 0700) for the duration.

    Raises HearthError when another server owns it, ConfigurationError when it cannot be written.
    """
    lock = _open_lock(data_dir)
    with lock:
        _acquire(lock, data_dir)
        try:
            lock.truncate(0)
            lock.write(str(os.getpid()).encode())
        except OSError as error:
            raise HearthError(f"{data_dir / _LOCK} cannot be written: {error.strerror}", status=503) from None
        held = Claim(data_dir)
        held.withdraw()  # of a server that was killed
        try:
            yield held
        finally:
            held.withdraw()


def running(data_dir: Path) -> Running | None:
    """The server that owns ``data_dir``, or None."""
    try:
        with (data_dir / _LOCK).open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _owner(lock, data_dir)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HearthError(f"cannot read {data_dir / _LOCK}: {error.strerror}") from None
    return None


def _owner(lock: BinaryIO, data_dir: Path) -> Running | None:
    text = lock.read().strip()
    if not text.isdigit():  # taken this instant, by a start that has not written yet or by another look
        return None
    pid = int(text)
    try:
        published = msgspec.json.decode((data_dir / _RUN).read_bytes(), type=Running)
    except (OSError, msgspec.DecodeError):
        return Running(pid)
    return published if published.pid == pid else Running(pid)


def _open_lock(data_dir: Path) -> BinaryIO:
    try:
        make_private(data_dir)
        return os.fdopen(
            os.open(data_dir / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0
        )
    except OSError as error:
        raise ConfigurationError(
            f"the data directory {data_dir} cannot be used: {error.strerror}; choose another --data-dir"
        ) from None


def _acquire(lock: BinaryIO, data_dir: Path) -> None:
    deadline = time.monotonic() + _RETRY_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
    owner = running(data_dir)
    where = f" (process {owner.pid}{f', {owner.url}' if owner.url else ''})" if owner else ""
    raise HearthError(
        f"a server is already running on {data_dir}{where}; `hearth stop` ends it", code="already_running"
    )
