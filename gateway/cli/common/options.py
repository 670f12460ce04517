"""Options that several commands share, and the settings that they select."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from gateway.base.private import check_usable
from gateway.config.settings import Settings
from gateway.config.sources import LoadedSettings, load_settings

F = TypeVar("F", bound=Callable[..., Any])
_LONGEST = 1000  # characters of a sentence


class LocalOptions(NamedTuple):
    """The values of ``--data-dir`` and ``--config``."""

    data_dir: Path | None
    config_file: Path | None

    def load(self, **flags: object) -> LoadedSettings:
        """Load the settings of this command line. ``flags`` are dotted keys with ``__`` for the dot; None is not given.

        Raises ConfigurationError, also when the data directory exists but cannot be used.
        """
        dotted = {name.replace("__", "."): value for name, value in flags.items()}
        dotted["data_dir"] = None if self.data_dir is None else str(self.data_dir)
        loaded = load_settings(dotted, os.environ, self.config_file)
        check_usable(loaded.settings.data_dir)
        return loaded

    @property
    def settings(self) -> Settings:
        """Raises ConfigurationError."""
        return self.load().settings


class CommandGroup(click.Group):
    """Lists its commands with the whole first sentence of their help, which click cuts at the end of the line."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        rows = [(name, self.commands[name].get_short_help_str(_LONGEST)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class PathType(click.Path):
    """A nonempty path: ``--data-dir "$UNSET"`` is a mistake and must not mean the working directory."""

    def __init__(self, *, allow_dash: bool = False, exists: bool = False) -> None:
        super().__init__(path_type=Path, readable=False, allow_dash=allow_dash, exists=exists)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


def given(name: str, value: Any) -> Any:
    """``value`` of an option, or the one that stands before the command, at its group."""
    context = click.get_current_context().parent
    while value is None and context is not None:
        value, context = context.params.get(name, value), context.parent
    return value


_INHERITED = frozenset({"data_dir", "config_file", "url", "key"})


def is_group(context: click.Context) -> bool:
    """Whether a command of this group follows. Raises UsageError for an option of the group's own listing before it."""
    name = context.invoked_subcommand
    if name is None:
        return False
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source is ParameterSource.COMMANDLINE and option.name not in _INHERITED:
            raise click.UsageError(
                f"{option.opts[0]} has no effect before `{name}`; write it after `{name}`", context
            )
    return True


def with_local(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--data-dir`` and ``--config``, and pass them to the command as ``local``."""

    @click.option("--data-dir", type=PathType(), help="Directory with the database and the models.")
    @click.option("--config", "config_file", type=PathType(), help="Also read settings from this TOML file.")
    @functools.wraps(command)
    def run(*args: Any, data_dir: Path | None, config_file: Path | None, **others: Any) -> Any:
        local = LocalOptions(given("data_dir", data_dir), given("config_file", config_file))
        return command(*args, local=local, **others)

    return run


def json_option(command: F) -> F:
    """Add ``--json``: output for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)
