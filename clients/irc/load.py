"""The configuration's file: TOML. Unknown keys, wrong values and contradictions are refused by name."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import msgspec

from clients.irc.checks import contradictions
from clients.irc.config import Config, ConfigError, read_at_most

_MOST_BYTES = 1024 * 1024


def load(path: Path) -> Config:
    """Read and check the file. Raises ConfigError."""
    try:
        tables = tomllib.loads(read_at_most(path, _MOST_BYTES).decode())
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from None
    try:
        return parse(tables)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def parse(tables: object) -> Config:
    """Check the tables of a file. Raises ConfigError."""
    try:
        config = msgspec.convert(tables, Config, dec_hook=_path)
    except msgspec.ValidationError as error:
        raise ConfigError(_readable(str(error))) from None
    problems = contradictions(config)
    if problems:
        raise ConfigError("; ".join(problems))
    return config


def _path(kind: type, value: object) -> Path:
    """A path. It may begin with a variable, such as `$CREDENTIALS_DIRECTORY` and `$STATE_DIRECTORY` of systemd."""
    if kind is not Path or not isinstance(value, str) or not value or "\0" in value:
        raise ValueError("Expected a path as text")
    first, slash, rest = value.partition("/")
    if first.startswith("$"):
        folder = os.environ.get(first[1:], "")
        if not folder:
            raise ValueError(f"`{first}` is not set: a service manager sets it, elsewhere write the path")
        return Path(folder + slash + rest)
    try:
        return Path(value).expanduser()
    except RuntimeError:
        raise ValueError(f"`{first}` is nobody's home directory on this machine") from None


def _readable(message: str) -> str:
    """msgspec's message with the field first: ``networks[0].port: …``."""
    text, _, path = message.partition(" - at `$.")
    return f"{path.rstrip('`')}: {text}" if path else text
