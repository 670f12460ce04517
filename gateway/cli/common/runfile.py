"""The owner of a data directory: a server holds a lock while it runs, and publishes its address in a file.

Only the lock proves that a server runs, because the kernel releases it however the process ends. ``run.json`` of a
server that was killed is stale and is ignored without the lock.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from gateway.base.errors import ConfigurationError, HearthError
from gateway.base.private import make_private

_LOCK = "run.lock"
_RUN = "run.json"
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
            lock.write(str(os.getpid()).encode())
        except OSError as error:
            raise HearthError(f"{data_dir / _LOCK} cannot be written: {error.strerror}", status=503) from None
        file = data_dir / _RUN

        def publish(url: str) -> None:
            temporary = file.with_suffix(".json.new")
            temporary.write_bytes(msgspec.json.encode(Running(os.getpid(), url)))
            temporary.replace(file)

        file.unlink(missing_ok=True)  # left by a server that was killed
        try:
            yield publish
        finally:
            file.unlink(missing_ok=True)


def running(data_dir: Path) -> Running | None:
    """Return the server that owns ``data_dir``, None if there is none."""
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
    if (
        not text.isdigit()
    ):  # locked a moment ago, by a server that has not written its number yet, or by `status`
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
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
    owner = running(data_dir)
    where = f" (process {owner.pid}{f', {owner.url}' if owner.url else ''})" if owner else ""
    raise HearthError(
        f"a server is already running on {data_dir}{where}; `hearth stop` ends it", code="already_running"
    )
