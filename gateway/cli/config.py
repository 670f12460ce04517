"""`hearth config show`: the effective settings and their origins."""

from __future__ import annotations

import click
import msgspec

from gateway.cli.common.options import CommandGroup, LocalOptions, json_option, with_local
from gateway.cli.common.surroundings import EXIT_CONFIGURATION
from gateway.cli.common.text import say, table
from gateway.config.sources import flatten
from gateway.server.consistency import problems


@click.group(cls=CommandGroup)
def config() -> None:
    """Show the configuration."""


@config.command()
@click.option("--origin", is_flag=True, help="Say where each value came from.")
@json_option
@with_local
def show(origin: bool, as_json: bool, local: LocalOptions) -> int:
    """Print every effective setting. Contradictions are listed, and the exit status is 78."""
    loaded = local.load()
    values = flatten(loaded.settings)
    if as_json:
        shown: object = values
        if origin:
            shown = {key: {"value": value, "origin": loaded.origins[key]} for key, value in values.items()}
        say(msgspec.json.format(msgspec.json.encode(shown), indent=2))
    else:
        rows = [[key, "=", msgspec.json.encode(value).decode()] for key, value in values.items()]
        if origin:
            rows = [[*row, f"# {loaded.origins[row[0]]}"] for row in rows]
        say(table(rows))
    found = problems(loaded.settings)
    for problem in found:
        say(f"hearth: {problem}", err=True)
    return EXIT_CONFIGURATION if found else 0
