"""The fields of the settings by dotted key, and the check of a value against its field."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any

import msgspec
from msgspec import Meta, inspect

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
