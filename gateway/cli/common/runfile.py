"""The owner of a data directory: a server locks ``run.lock`` while it runs, and writes its address into it.

Only the lock proves that a server runs, because the kernel releases it however the process ends.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from gateway.base.errors import ConfigurationError, HearthError
from gateway.base.private import make_private

_LOCK = "run.lock"
# `hearth status` holds the lock for an instant to test it; a start outlasts that.
_RETRY_SECONDS = 0.5


class Running(Struct, frozen=True):
    """A running server. ``url`` is None until it listens."""

    pid: int
    url: str | None = None


@contextmanager
def claim(data_dir: Path) -> Iterator[Callable[[str], None]]:
    """Own ``data_dir`` (created if missing, mode 0700) within the block. Yields a function that publishes the address.

    Raises HearthError when another server owns it, ConfigurationError when it cannot be written.
    """
    with _open_lock(data_dir) as lock:
        _acquire(lock, data_dir)
        try:
            lock.truncate(0)
            _write(lock)
        except OSError as error:
            raise HearthError(f"{data_dir / _LOCK} cannot be written: {error.strerror}", status=503) from None
        yield partial(_write, lock)


def running(data_dir: Path) -> Running | None:
    """Return the server that owns ``data_dir``, None if there is none."""
    try:
        with (data_dir / _LOCK).open("rb") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return msgspec.json.decode(lock.read(), type=Running)
    except (FileNotFoundError, msgspec.DecodeError):  # not decodable: a server has just locked it
        return None
    except OSError as error:
        raise HearthError(f"cannot read {data_dir / _LOCK}: {error.strerror}") from None
    return None


def _write(lock: BinaryIO, url: str | None = None) -> None:
    """Write in one call, which a reader sees whole; the address only makes the text longer."""
    os.pwrite(lock.fileno(), msgspec.json.encode(Running(os.getpid(), url)), 0)


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
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
    owner = running(data_dir)
    where = f" (process {owner.pid}{f', {owner.url}' if owner.url else ''})" if owner else ""
    # An older hearth wrote only its process into the file.
    remedy = "`hearth stop` ends it" if owner else f"end the process that {data_dir / _LOCK} names"
    raise HearthError(f"a server is already running on {data_dir}{where}; {remedy}", code="already_running")
