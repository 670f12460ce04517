"""`hearth start`: run the server, in the foreground or detached."""

from __future__ import annotations

import signal
import sys

import click

from gateway.cli.common.options import LocalOptions, settings_of, with_local
from gateway.cli.common.runfile import claim
from gateway.cli.common.text import say
from gateway.cli.server.detach import detach_process


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
    settings = settings_of(*local, **flags).settings
    if detach and (url := detach_process(settings.data_dir)) is not None:
        _announce(url)
        return
    # Blocked until the server handles them: an exception during an import may get lost or leave a traceback.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
    with claim(settings.data_dir) as publish:
        from gateway.server.serve import run  # late: a refused start does not import the whole server

        def on_listening(url: str) -> None:
            publish(url)
            _announce(url)

        run(settings, on_listening)


def _announce(url: str) -> None:
    say(f"listening on {url}")
    say(f"try: curl -N -H 'Accept: text/event-stream' --data 'Who created Befunge?' {url}/ask")
    sys.stdout.flush()
