"""`hearth start`: run the server, in the foreground or detached."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import click

from gateway.cli.common.options import local_options, settings_of
from gateway.cli.common.runfile import claim
from gateway.cli.common.text import say
from gateway.cli.server.detach import detach_process
from gateway.config.settings import Settings


@click.command()
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port to listen on; 0 picks a free one.  [default: 8420]")
@click.option("--model", help="A name from `hearth models`, or the path of a GGUF file.")
@click.option("--idle", type=float, help="Seconds until an idle model is let go; negative: never.")
@click.option(
    "--detach", is_flag=True, help="Run in the background; the log is hearth.log in the data directory."
)
@local_options
def start(
    host: str | None,
    port: int | None,
    model: str | None,
    idle: float | None,
    detach: bool,
    data_dir: Path | None,
    config_file: Path | None,
) -> None:
    """Run the server until Ctrl-C or `hearth stop`."""
    settings = settings_of(
        data_dir,
        config_file,
        server__host=host,
        server__port=port,
        model__name=model,
        model__idle_seconds=idle,
    ).settings
    if detach:
        url = detach_process(settings.data_dir)
        if url is not None:
            _announce(url)
            return
    _serve(settings)


def _serve(settings: Settings) -> None:
    # Held back until the server can take them: an exception amid an import may get lost or leave a traceback.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
    with claim(settings.data_dir) as held:
        from gateway.server.serve import run  # the whole server: not paid for by a refused start

        def on_listening(url: str) -> None:
            held.publish(url)
            _announce(url)

        run(settings, on_listening)


def _announce(url: str) -> None:
    say(f"listening on {url}")
    say(f"try: curl -N -H 'Accept: text/event-stream' --data 'Who created Befunge?' {url}/ask")
    sys.stdout.flush()
