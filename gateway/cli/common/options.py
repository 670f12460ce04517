"""Options that several commands share, and the settings that they select."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from gateway.base.private import check_usable
from gateway.config.settings import Settings
from gateway.config.sources import LoadedSettings, load_settings

F = TypeVar("F", bound=Callable[..., Any])


class LocalOptions(NamedTuple):
    """The values of ``--data-dir`` and ``--config``."""

    data_dir: Path | None
    config_file: Path | None

    @property
    def settings(self) -> Settings:
        """Raises ConfigurationError."""
        return settings_of(*self).settings


class PathType(click.Path):
    """A nonempty path: ``--data-dir "$UNSET"`` is a mistake and must not mean the working directory."""

    def __init__(self, *, allow_dash: bool = False, exists: bool = False) -> None:
        super().__init__(path_type=Path, readable=False, allow_dash=allow_dash, exists=exists)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


def local_options(command: F) -> F:
    """Add ``--data-dir`` and ``--config``, for commands that work on this machine's files."""
    config = click.option(
        "--config", "config_file", type=PathType(), help="Also read settings from this TOML file."
    )
    return click.option("--data-dir", type=PathType(), help="Directory with the database and the models.")(
        config(command)
    )


def client_options(command: F) -> F:
    """Add :func:`local_options`, ``--url`` and ``--key``, for commands that talk to a running server."""
    key = click.option("--key", help="API key. Default: HEARTH_API_KEY.")
    url = click.option("--url", help="Server address. Default: HEARTH_URL, or the local server.")
    return local_options(url(key(command)))


def with_local(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add :func:`local_options` and pass them to the command as ``local``."""

    @functools.wraps(command)
    def run(*args: Any, data_dir: Path | None, config_file: Path | None, **others: Any) -> Any:
        return command(*args, local=LocalOptions(data_dir, config_file), **others)

    return local_options(run)


def json_option(command: F) -> F:
    """Add ``--json``: output for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def settings_of(data_dir: Path | None, config_file: Path | None, /, **flags: object) -> LoadedSettings:
    """Load the settings of this command line. ``flags`` are dotted keys with ``__`` for the dot; None is not given.

    Raises ConfigurationError, also when the data directory exists but cannot be used.
    """
    dotted = {name.replace("__", "."): value for name, value in flags.items()}
    dotted["data_dir"] = None if data_dir is None else str(data_dir)
    loaded = load_settings(dotted, os.environ, config_file)
    check_usable(loaded.settings.data_dir)
    return loaded
