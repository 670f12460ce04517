"""The background process of `hearth start --detach`."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from gateway.base.errors import ConfigurationError, HearthError
from gateway.base.private import make_private
from gateway.cli.common.exits import EXIT_FAILED
from gateway.cli.common.runfile import running
from gateway.cli.common.text import say

_LOG_LIMIT = 10 * 1024 * 1024
_SHOWN_LINES = 20
_START_SECONDS = 120.0
_POLL_SECONDS = 0.05


def detach_process(data_dir: Path) -> str | None:
    """Fork. Returns None in the child, which becomes the server, and in the parent the URL once the child listens.

    If the child fails, the parent exits with the child's status. Call it before any thread exists.
    """
    log = data_dir / "hearth.log"
    descriptor = _open_log(log)
    offset = os.fstat(descriptor).st_size
    child = os.fork()
    if child == 0:
        os.setsid()  # neither Ctrl-C nor the end of the terminal reaches the server
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (descriptor, 1), (descriptor, 2)):
            os.dup2(source, target)
        os.close(null)
        os.close(descriptor)
        return None
    os.close(descriptor)
    try:
        return _wait(child, data_dir, log, offset)
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        raise


def _wait(child: int, data_dir: Path, log: Path, offset: int) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            lines = log.read_bytes()[offset:].decode("utf-8", "replace").splitlines()
            say("\n".join(lines[-_SHOWN_LINES:]) or _silent_end(code, log), err=True)
            sys.exit(code if code > 0 else EXIT_FAILED)
        server = running(data_dir)
        if server is not None and server.pid == child and server.url:
            return server.url
        time.sleep(_POLL_SECONDS)
    os.kill(child, signal.SIGTERM)
    raise HearthError(f"the server did not listen within {_START_SECONDS:.0f} s; see {log}", status=503)


def _silent_end(code: int, log: Path) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
    return f"hearth: the server {how} and wrote nothing to {log}: is the disk full? `hearth start` shows more"


def _open_log(path: Path) -> int:
    try:
        make_private(path.parent)
        if path.exists() and path.stat().st_size > _LOG_LIMIT:
            path.replace(path.with_suffix(".log.1"))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror}; choose another --data-dir"
        ) from None
