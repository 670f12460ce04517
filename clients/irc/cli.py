"""The command `hearth-irc`."""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

import click
import structlog
from structlog.typing import EventDict

from clients.irc import __version__
from clients.irc.config import Config, ConfigError, load
from clients.irc.memory import StateError
from clients.irc.protocol.wire import clean

EXIT_CONFIGURATION = 78  # EX_CONFIG of sysexits.h
EXIT_TEMPORARY = 75  # EX_TEMPFAIL
_WRONG_KEY = {401, 403}


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config", "file", required=True, type=click.Path(path_type=Path, readable=False), help="The TOML file."
)
@click.option("--check", is_flag=True, help="Check the file, its secrets and the gateway, then exit.")
@click.option("--log-level", default="info", type=click.Choice(["debug", "info", "warning", "error"]))
@click.version_option(__version__, prog_name="hearth-irc")
def main(file: Path, check: bool, log_level: str) -> None:
    """Answer questions on IRC with a hearth server."""
    if importlib.util.find_spec("pydle") is None:
        click.echo("hearth-irc: pydle is missing: pip install 'hearth[irc]'", err=True)
        sys.exit(EXIT_CONFIGURATION)
    _log_to_stderr(log_level)
    try:
        config = load(file)
        sys.exit(asyncio.run(_check(config) if check else _run(config)))
    except (ConfigError, StateError) as error:
        click.echo(clean(f"hearth-irc: {error}"), err=True)
        sys.exit(EXIT_CONFIGURATION)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:  # from standard output; all other errors are handled above
        click.echo(f"hearth-irc: {error.filename or 'standard output'}: {error.strerror}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nothing is tried again at exit
        sys.exit(1)


async def _run(config: Config) -> int:
    # Imported late, after the check for pydle.
    from clients.irc.bot import Bot

    bot = Bot(config)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, bot.stop)
    await bot.run()
    return 0


async def _check(config: Config) -> int:
    """Check everything except the connection to IRC."""
    # Imported late, as above.
    from clients.irc.bot import Bot
    from clients.irc.gateway import GatewayError

    bot = Bot(config)
    try:
        await bot.check()
    except GatewayError as error:
        remedy = "; start it, or correct gateway.url" if error.code == "unreachable" else ""
        click.echo(clean(f"hearth-irc: the gateway {config.gateway.url}: {error}{remedy}"), err=True)
        return EXIT_CONFIGURATION if error.status in _WRONG_KEY else EXIT_TEMPORARY
    counts = {"network": len(config.networks), "channel": sum(len(each.channels) for each in config.networks)}
    known = ", ".join(f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items())
    click.echo(f"{known}, and the gateway is ready")
    return 0


def _log_to_stderr(level: str) -> None:
    structlog.configure(
        processors=[
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _clean,
            structlog.processors.LogfmtRenderer(sort_keys=False, key_order=["timestamp", "level", "event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _clean(logger: Any, method: str, event: EventDict) -> EventDict:
    """Nicks, channels and errors are others' text. The lines of a traceback stay lines."""
    return {
        name: "\n".join(map(clean, value.split("\n"))) if isinstance(value, str) else value
        for name, value in event.items()
    }


if __name__ == "__main__":
    main()
