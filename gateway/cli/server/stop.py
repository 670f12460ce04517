"""`hearth stop`: stop the server of a data directory and wait for its end."""

from __future__ import annotations

import os
import signal
import time

import click

from gateway.base.errors import HearthError
from gateway.cli.common.options import LocalOptions, with_local
from gateway.cli.common.runfile import running
from gateway.cli.common.text import say

_MARGIN_SECONDS = 5.0
_POLL_SECONDS = 0.05


@click.command()
@with_local
def stop(local: LocalOptions) -> None:
    """Stop the server. Open requests get the configured grace time to end."""
    settings = local.settings
    server = running(settings.data_dir)
    if server is None:
        say(f"no server is running on {settings.data_dir}")
        return
    try:
        os.kill(server.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended
    except PermissionError:
        raise HearthError(f"process {server.pid} belongs to another user: stop it as that user") from None
    grace = settings.server.shutdown_grace_seconds + settings.model.stop_grace_seconds + _MARGIN_SECONDS
    deadline = time.monotonic() + grace
    while (left := running(settings.data_dir)) is not None and left.pid == server.pid:
        if time.monotonic() > deadline:
            raise HearthError(
                f"process {server.pid} has not ended after {grace:.0f} s; `kill -9 {server.pid}` ends it",
                status=503,
            )
        time.sleep(_POLL_SECONDS)
    say(f"stopped (process {server.pid})")
