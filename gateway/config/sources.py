"""The sources of settings: flag > environment > --config file > user file > system file > default.

Each value is checked on input, so errors name the field, the value, the range and the origin. Unknown keys are errors.
"""

from __future__ import annotations

import difflib
import math
import os
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct, inspect

from gateway.base.errors import ConfigurationError
from gateway.config.settings import Settings

FIELDS: Mapping[str, Any] = {
    "data_dir": Annotated[str, Meta(min_length=1)],  # checked as text; the caller makes it a Path
    **{
        f"{section.name}.{field.name}": field.type
        for section in msgspec.structs.fields(Settings)
        if section.name != "data_dir"
        for field in msgspec.structs.fields(section.type)
    },
}
"""Type annotations by dotted key, in the order of ``gateway.config.settings``."""

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})

SYSTEM_FILE = Path("/etc/hearth/config.toml")
ENV_PREFIX = "HEARTH_"
_MOST_BYTES = 1024 * 1024
# Read by the clients and by the model host, not settings of the server.
_RESERVED_NAMES = frozenset({"HEARTH_URL", "HEARTH_API_KEY", "HEARTH_API_KEY_FILE"})
_RESERVED_PREFIX = "HEARTH_HOST_"
_FLAG_NAMES = {
    "data_dir": "--data-dir",
    "server.host": "--host",
    "server.port": "--port",
    "model.name": "--model",
    "model.idle_seconds": "--idle",
}


class LoadedSettings(Struct, frozen=True):
    """The settings, and the origin of each value by dotted key (``environment HEARTH_LOG__JSON``)."""

    settings: Settings
    origins: dict[str, str]


class _Given(Struct, frozen=True):
    """A value from one source; ``text`` values (environment) must be parsed."""

    value: object
    origin: str
    text: bool = False
    base: Path | None = None  # of a relative path; None: the working directory


def load_settings(
    flags: Mapping[str, object],
    env: Mapping[str, str],
    config_file: Path | None,
    *,
    system_file: Path = SYSTEM_FILE,
) -> LoadedSettings:
    """Merge all sources. ``flags`` maps dotted keys to values, None for a flag that was not given.

    Raises ConfigurationError: unknown key, value out of range, unreadable or malformed file.
    """
    given: dict[str, _Given] = {}
    given.update(_from_file(system_file, required=False))
    user_file = _xdg(env, "XDG_CONFIG_HOME", ".config") / "hearth" / "config.toml"
    given.update(_from_file(user_file, required=False))
    if config_file is not None:
        given.update(_from_file(config_file, required=True))
    given.update(_from_environment(env))
    for key, value in flags.items():
        if value is not None:
            given[_known(key, "flag")] = _Given(value, f"flag {_FLAG_NAMES.get(key, key)}")
    return _build(given, env)


def flatten(settings: Settings) -> dict[str, object]:
    """All settings by dotted key, as JSON values; secrets are masked."""
    tree: dict[str, Any] = msgspec.to_builtins(settings, enc_hook=str)
    for section, name in (("upstream", "key"), ("store", "url"), ("tasks", "webhook_secret")):
        if tree[section][name]:
            tree[section][name] = "[redacted]"
    for server in tree["tasks"]["servers"]:
        server["env"] = dict.fromkeys(server["env"], "[redacted]")
    found: dict[str, object] = {"data_dir": tree.pop("data_dir")}
    return found | {f"{section}.{name}": tree[section][name] for section in tree for name in tree[section]}


def _build(given: Mapping[str, _Given], env: Mapping[str, str]) -> LoadedSettings:
    tree: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for key in FIELDS:
        item = given.get(key)
        if key == "data_dir":
            given_dir = item and str(convert_value(key, item.value, item.origin, text=item.text))
            default = _xdg(env, "XDG_DATA_HOME", ".local/share") / "hearth"
            tree[key] = _path(key, item, given_dir) if item and given_dir else default
        elif item is not None:
            section, _, name = key.partition(".")
            value = convert_value(key, item.value, item.origin, text=item.text)
            if key == "model.adapters":
                value = [str(_path(key, item, text)) for text in cast("list[str]", value)]
            tree.setdefault(section, {})[name] = value
        origins[key] = item.origin if item else "default"
    # msgspec cannot convert to Path; the hook passes the Path through.
    settings = msgspec.convert(tree, Settings, dec_hook=lambda _type, value: value)
    return LoadedSettings(settings, origins)


def _path(key: str, item: _Given, text: str) -> Path:
    try:
        text.encode()
        return ((item.base or Path.cwd()) / Path(text).expanduser()).resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, an unknown ~user, NUL, no UTF-8
        raise ConfigurationError(
            f"`{key}` ({item.origin}) is not a usable path: {error}", param=key
        ) from None


def _from_file(path: Path, *, required: bool) -> dict[str, _Given]:
    try:
        document = tomllib.loads(read_text(path))
    except FileNotFoundError:
        if required:
            raise ConfigurationError(f"configuration file {path} does not exist") from None
        return {}
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"configuration file {path} is not valid TOML: {error}") from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read configuration file {path}: {error}") from None
    origin, base = f"file {path}", path.resolve().parent
    return {_known(key, origin): _Given(value, origin, base=base) for key, value in _flat(document, origin)}


def _flat(document: Mapping[str, Any], origin: str) -> Iterator[tuple[str, object]]:
    sections = {key.partition(".")[0] for key in FIELDS if "." in key}
    for name, value in document.items():
        if isinstance(value, dict) and value:
            yield from ((f"{name}.{inner}", item) for inner, item in value.items())
        elif name in sections and value == {}:
            continue  # a table header with nothing below it
        elif name in sections:
            raise ConfigurationError(f"`{name}` ({origin}) must be a table: write [{name}] above its fields")
        else:
            yield name, value


def _from_environment(env: Mapping[str, str]) -> dict[str, _Given]:
    given: dict[str, _Given] = {}
    for variable in sorted(env):
        reserved = variable in _RESERVED_NAMES or variable.startswith(_RESERVED_PREFIX)
        if reserved or not variable.startswith(ENV_PREFIX):
            continue
        origin = f"environment {variable}"
        key = variable.removeprefix(ENV_PREFIX).lower().replace("__", ".")
        value = env[variable]
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigurationError(f"the value of {origin} is not UTF-8", param=key) from None
        if key not in FIELDS and key.endswith("_file"):
            key = key.removesuffix("_file")
            try:
                value = read_text(Path(value)).strip()
            except (OSError, ValueError) as error:
                raise ConfigurationError(f"cannot read the file named by {origin}: {error}") from None
        key = _known(key, origin)
        if key in given:
            raise ConfigurationError(
                f"`{key}` is set twice: by {given[key].origin} and by {origin}; keep one"
            )
        given[key] = _Given(value, origin, text=True)
    return given


def read_text(path: Path) -> str:
    """Read a small UTF-8 file. Raises OSError, ValueError."""
    with path.open("rb") as file:
        found = file.read(_MOST_BYTES + 1)
    if len(found) > _MOST_BYTES:
        raise ValueError(f"it has more than {_MOST_BYTES} bytes: is it the right file?")
    return found.decode()


def _known(key: str, origin: str) -> str:
    """The key, if it exists. Raises ConfigurationError with the nearest key, in the origin's spelling."""
    if key in FIELDS:
        return key
    in_environment = origin.startswith("environment ")
    # Forgotten sections are more frequent than misspelt names, so names without a section are compared, too.
    names = {name: name for name in FIELDS} | {name.rpartition(".")[2]: name for name in FIELDS}
    close = difflib.get_close_matches(key, names, n=1, cutoff=0.6) or difflib.get_close_matches(
        key.rpartition(".")[2], names, n=1, cutoff=0.6
    )
    hint = ""
    if close:
        nearest = names[close[0]]
        hint = f"; did you mean `{variable_name(nearest) if in_environment else nearest}`?"
    shown = origin.removeprefix("environment ") if in_environment else f"{key}"
    where = "environment" if in_environment else origin
    raise ConfigurationError(f"unknown setting `{shown}` ({where}){hint}", param=key)


def variable_name(key: str) -> str:
    return ENV_PREFIX + key.upper().replace(".", "__")


def _xdg(env: Mapping[str, str], variable: str, fallback: str) -> Path:
    value = env.get(variable, "")
    # The XDG specification ignores relative paths.
    if value and os.path.isabs(value):  # noqa: PTH117 - a Path would normalize it
        return Path(value)
    home = env.get("HOME")
    return (Path(home) if home else Path.home()) / fallback


def convert_value(key: str, value: object, origin: str, *, text: bool) -> object:
    """``value`` as the field's type. ``text``: the value is a string to parse, lists separated by commas or in JSON.

    Raises ConfigurationError with field, value, range and origin.
    """
    kind = inspect.type_info(FIELDS[key])
    parsed = _parse(value, kind) if text and isinstance(value, str) else value
    try:
        result: object = msgspec.convert(parsed, FIELDS[key])
    except msgspec.ValidationError:
        raise _refusal(key, value, origin, kind) from None
    if isinstance(result, float) and not math.isfinite(result):  # TOML has inf and nan
        raise _refusal(key, value, origin, kind)
    return result


def _parse(value: str, kind: inspect.Type) -> object:
    """The value that ``value`` represents; text that represents none is returned unchanged."""
    text = value.strip()
    if isinstance(kind, inspect.BoolType):
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else value
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        try:
            return int(text) if isinstance(kind, inspect.IntType) else float(text)
        except ValueError:
            return value
    if isinstance(kind, inspect.ListType):
        with suppress(msgspec.DecodeError):
            if text.startswith("["):
                return msgspec.json.decode(text)
        return [_parse(part.strip(), kind.item_type) for part in text.split(",") if part.strip()]
    return value


def _refusal(key: str, value: object, origin: str, kind: inspect.Type) -> ConfigurationError:
    return ConfigurationError(f"`{key}` must be {expectation(kind)}, not {value!r} ({origin})", param=key)


def expectation(kind: inspect.Type) -> str:
    """Describe a field's range: ``a whole number from 0 to 65535``."""
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        noun = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        if kind.ge is not None and kind.le is not None:
            return f"{noun} from {kind.ge} to {kind.le}"
        if kind.gt is not None:
            return f"{noun} greater than {kind.gt}"
        return f"{noun} of at least {kind.ge}" if kind.ge is not None else noun
    if isinstance(kind, inspect.BoolType):
        return "true or false"
    if isinstance(kind, inspect.ListType):
        each = expectation(kind.item_type)
        noun = "a list of at least one" if kind.min_length else "a list"
        return f"{noun} of texts" if each == "a text" else f"{noun}, each {each}"
    if isinstance(kind, inspect.LiteralType):
        return "one of " + ", ".join(str(value) for value in kind.values)
    if isinstance(kind, inspect.StrType) and kind.pattern:
        return f"a text that matches {kind.pattern}"
    return "a text that is not empty" if isinstance(kind, inspect.StrType) and kind.min_length else "a text"
