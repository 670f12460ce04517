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

_LOG = "hearth.log"
_LOG_LIMIT = 10 * 1024 * 1024
_SHOWN_LINES = 20
_START_SECONDS = 120.0
_POLL_SECONDS = 0.05


def detach_process(data_dir: Path) -> str | None:
    """Fork. The child gets None and is the server to be; the parent gets the URL once the child listens.

    The parent ends with the child's own exit status when the child fails. Call before any thread exists.
    """
    log = _open_log(data_dir)
    offset = os.fstat(log).st_size
    child = os.fork()
    if child == 0:
        _leave_terminal(log)
        return None
    os.close(log)
    try:
        return _wait(child, data_dir, offset)
    except KeyboardInterrupt:
        os.kill(child, signal.SIGTERM)
        raise


def _wait(child: int, data_dir: Path, offset: int) -> str:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            said = _tail(data_dir / _LOG, offset)
            say(said or _nothing_said(code, data_dir / _LOG), err=True)
            sys.exit(code if code > 0 else EXIT_FAILED)
        server = running(data_dir)
        if server is not None and server.pid == child and server.url:
            return server.url
        time.sleep(_POLL_SECONDS)
    os.kill(child, signal.SIGTERM)
    raise HearthError(
        f"the server did not listen within {_START_SECONDS:.0f} s; see {data_dir / _LOG}", status=503
    )


def _nothing_said(code: int, log: Path) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
    return f"hearth: the server {how} and wrote nothing to {log}: is the disk full? `hearth start` shows more"


def _open_log(data_dir: Path) -> int:
    path = data_dir / _LOG
    try:
        make_private(data_dir)
        if path.exists() and path.stat().st_size > _LOG_LIMIT:
            path.replace(path.with_suffix(".log.1"))
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write {path}: {error.strerror}; choose another --data-dir"
        ) from None


def _leave_terminal(log: int) -> None:
    """A session of its own: closing the terminal and its Ctrl-C do not reach the server."""
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(nothing)
    os.close(log)


def _tail(path: Path, offset: int) -> str:
    with path.open("rb") as file:
        file.seek(offset)
        lines = file.read().decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-_SHOWN_LINES:])
