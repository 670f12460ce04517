"""`hearth start`: run the server, in the foreground or detached."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import click

from gateway.base.errors import ConfigurationError, HearthError
from gateway.base.private import make_private
from gateway.cli.common.options import LocalOptions, with_local
from gateway.cli.common.runfile import claim, running
from gateway.cli.common.surroundings import EXIT_FAILED
from gateway.cli.common.text import say
from gateway.config.settings import Settings
from gateway.models.catalog import Catalog

_LOG_LIMIT = 10 * 1024 * 1024
_SHOWN_LINES = 20
_START_SECONDS = 120.0
_POLL_SECONDS = 0.05


@click.command()
@click.option("--host", "server__host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option(
    "--port", "server__port", type=int, help="Port to listen on; 0 picks a free one.  [default: 8420]"
)
@click.option("--model", "model__name", help="A name from `hearth models`, or the path of a GGUF file.")
@click.option(
    "--idle",
    "model__idle_seconds",
    type=float,
    help="Seconds until an idle model is unloaded; negative: never.",
)
@click.option(
    "--detach", is_flag=True, help="Run in the background; the log is hearth.log in the data directory."
)
@with_local
def start(detach: bool, local: LocalOptions, **flags: object) -> None:
    """Run the server until Ctrl-C or `hearth stop`."""
    settings = local.load(**flags).settings
    if detach and (url := _detach(settings.data_dir)) is not None:
        _announce(url, settings)
        return
    # Blocked until the server handles them: an exception during an import may get lost or leave a traceback.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
    with claim(settings.data_dir) as publish:
        from gateway.server.serve import run  # late: a refused start does not import the whole server

        def on_listening(url: str) -> None:
            publish(url)
            _announce(url, settings)

        run(settings, on_listening)


def _announce(url: str, settings: Settings) -> None:
    say(f"listening on {url}")
    say(f"try: curl -N -H 'Accept: text/event-stream' --data 'Who created Befunge?' {url}/ask")
    chosen = settings.model.name or settings.upstream.urls
    if not chosen and Catalog.load().unnamed(settings.data_dir).repo is None:
        say(
            "the built-in model copies answers from pages; `hearth pull` gets a small one that converses, too"
        )
    sys.stdout.flush()


def _detach(data_dir: Path) -> str | None:
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
