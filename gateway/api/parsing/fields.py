"""Parts that several endpoints read the same way."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from gateway.api.parsing.json_faults import MAX_DEPTH, deep_field, find_fault
from gateway.base.errors import InvalidRequestError
from gateway.inference.interface import KeepAlive

T = TypeVar("T")

# Whom a client asks for. Kept in the request log, and what DELETE /v1/requests erases records by.
User = Annotated[str, Meta(max_length=256)]

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([+-]?)((?:\d+(?:\.\d*)?(?:ms|s|m|h|d))+)")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ms|s|m|h|d)")
_PATH = re.compile(r" - at `\$\.?(.*)`$", re.DOTALL)
_NAMED = re.compile(r"(?:missing required|contains unknown) field `(.*)`$", re.DOTALL)
_NEVER = -1.0


def parse_keep_alive(value: float | str | None) -> KeepAlive:
    """Ollama's ``keep_alive``: seconds, a duration such as ``10m`` or ``1h30m``, 0 = unload, negative = forever.

    Returns seconds, -1.0 for forever, None for the configured idle time. Raises InvalidRequestError.
    """
    if value is None:
        return None
    seconds = _seconds(value) if isinstance(value, str) else float(value)
    if seconds is None or not math.isfinite(seconds):
        raise InvalidRequestError(
            "`keep_alive` is a number of seconds or a duration such as 10m or 1h30m; "
            "0 unloads the model afterwards, a negative one keeps it forever",
            param="keep_alive",
        )
    return _NEVER if seconds < 0 else seconds


def _seconds(text: str) -> float | None:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        try:
            return float(text)
        except ValueError:
            return None
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(match[2]))
    return -total if match[1] == "-" else total


def decode_object(body: bytes) -> dict[str, Any]:
    """A request body that is one JSON object. Raises InvalidRequestError."""
    if (name := deep_field(body)) is not None:
        what = f"`{name[:100]}`" if name else "the body"
        raise InvalidRequestError(
            f"{what} is nested too deeply: a body has at most {MAX_DEPTH} levels of objects and lists",
            param=name[:100] or None,
            code="too_deep",
        )
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if (fault := find_fault(body)) is not None:
            path, problem = fault
            where = f"`{path}`" if path else "the body"
            raise InvalidRequestError(
                f"{where}: {problem}", param=path or None, code="invalid_json"
            ) from None
        raise InvalidRequestError(f"the body is no valid JSON: {error}", code="invalid_json") from None
    if not isinstance(value, dict):
        raise InvalidRequestError("the body must be a JSON object", code="invalid_json")
    return value


def convert(fields: dict[str, Any], kind: type[T], *, strict: bool = True) -> T:
    """``fields`` as a struct; when not ``strict``, numbers and truth values may be strings.

    Raises InvalidRequestError naming an unknown field, or the one out of its range.
    """
    known: tuple[str, ...] = getattr(kind, "__struct_encode_fields__", ())
    for name in fields:
        if name not in known:
            raise InvalidRequestError(f"unknown field `{name}`", param=name, code="unknown_field")
    try:
        return msgspec.convert(fields, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise _explained(str(error)) from None


def _explained(problem: str) -> InvalidRequestError:
    """msgspec's message with the field's path in front; the innermost field at fault becomes ``param``."""
    match = _PATH.search(problem)
    path, text = (match[1], problem[: match.start()]) if match else ("", problem)
    named = _NAMED.search(text)  # the path of a missing or unknown field ends at the object around it
    if named:
        path = f"{path}.{named[1]}" if path else named[1]
    code = "unknown_field" if "unknown field" in text else None
    return InvalidRequestError(f"`{path}`: {text}" if path else text, param=path or None, code=code)
