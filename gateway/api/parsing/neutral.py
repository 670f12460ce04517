"""Fields of an API that this server lacks: accepted while they ask for nothing, else refused by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.base.errors import InvalidRequestError

# Name of a field → the values that ask for nothing. null always asks for nothing.
Neutral = Mapping[str, tuple[Any, ...]]


def without_neutral(fields: dict[str, Any], unsupported: Neutral, prefix: str = "") -> dict[str, Any]:
    """``fields`` less the unsupported ones that ask for nothing. Raises for those that ask for something."""
    kept = {}
    for name, value in fields.items():
        if name not in unsupported:
            kept[name] = value
        elif value is not None and not any(
            type(value) is type(neutral) and value == neutral for neutral in unsupported[name]
        ):
            raise InvalidRequestError(
                f"`{prefix}{name}` is not supported{_only(unsupported[name])}",
                param=prefix + name,
                code="unsupported_field",
            )
    return kept


def without_neutral_in(value: Any, unsupported: Neutral, prefix: str) -> Any:
    """As :func:`without_neutral` where ``value`` may be anything; what is no object is left to the types."""
    return without_neutral(value, unsupported, prefix) if isinstance(value, dict) else value


def _only(neutral: tuple[Any, ...]) -> str:
    shown = " or ".join(str(value).lower() if isinstance(value, bool) else repr(value) for value in neutral)
    return f", except as {shown}" if neutral else ""
