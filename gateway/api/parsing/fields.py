"""Request bodies: JSON to typed structs, fields without effect, and errors that name a field."""

from __future__ import annotations

import math
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta, Struct

from gateway.api.parsing.explain import explained
from gateway.api.parsing.json_faults import MAX_DEPTH, deep_field, find_fault, json_object
from gateway.base.errors import InvalidRequestError
from gateway.inference.interface import KeepAlive
from model_host.protocol import Penalty, Sampling, Unit

T = TypeVar("T")

# The end user of a client. Stored in the request log; DELETE /v1/requests erases records by it.
User = Annotated[str, Meta(max_length=256)]
CallId = Annotated[str, Meta(min_length=1, max_length=256)]

# Names of the hints in the request that were accepted and had no effect, for the reply's header.
ignored_hints: ContextVar[list[str]] = ContextVar("ignored_hints")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([+-]?)((?:\d+(?:\.\d*)?(?:ms|s|m|h|d))+)")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ms|s|m|h|d)")
_NEVER = -1.0
_FEW = 12  # fields that an error lists


class Body(Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a request. ``aliases`` are other names of fields, ``forms`` those that ``prepare`` turns into them."""

    aliases: ClassVar[dict[str, str]] = {}
    forms: ClassVar[dict[str, str]] = {}

    @classmethod
    def prepare(cls, fields: dict[str, Any]) -> None:
        """Bring other clients' forms of the decoded fields into this one's. Raises InvalidRequestError."""

    @classmethod
    def all_aliases(cls) -> dict[str, str]:
        """The aliases of this class and its bases whose field it has."""
        found = cls.inherited("aliases")
        return {alias: name for alias, name in found.items() if name in cls.__struct_encode_fields__}

    @classmethod
    def inherited(cls, table: str) -> dict[str, str]:
        """``aliases`` or ``forms`` of this class and its bases."""
        found: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            found |= vars(base).get(table, {})
        return found


class Unimplemented(Struct, frozen=True, forbid_unknown_fields=True):
    """Values of a field that are accepted: those that change nothing, and hints (True: all values)."""

    neutral: list[Any] = []
    hint: bool | list[Any] = False

    def is_neutral(self, value: Any) -> bool:
        if isinstance(value, dict):
            value = {name: inner for name, inner in value.items() if inner is not None}
        return value is None or _among(value, self.neutral)

    def is_hint(self, value: Any) -> bool:
        return self.hint if isinstance(self.hint, bool) else _among(value, self.hint)


def _among(value: Any, values: list[Any]) -> bool:
    return any(type(value) is type(each) and value == each for each in values)


UNIMPLEMENTED = {
    kind: {
        path: Unimplemented(row) if isinstance(row, list) else msgspec.convert(row, Unimplemented)
        for path, row in rows.items()
    }
    for kind, rows in msgspec.toml.decode(Path(__file__).with_name("unimplemented.toml").read_bytes()).items()
}


class HintFields(Body, frozen=True):
    """The base of what generates in every API: the hints of any of them are taken by all."""

    aliases: ClassVar[dict[str, str]] = {"enable_thinking": "think"}


class ThoughtFields(HintFields, frozen=True, kw_only=True):
    """About thoughts and the chat template (`gateway.api.thoughts`)."""

    chat_template_kwargs: dict[str, Any] | None = None
    think: bool | str | None = None
    thinking: dict[str, Any] | None = None
    reasoning: dict[str, Any] | None = None
    reasoning_effort: str | None = None


class SamplingFields(Body, frozen=True, kw_only=True):
    """Sampling as OpenAI and Ollama name it; null means absent."""

    temperature: Annotated[float, Meta(ge=0.0, le=5.0)] | None = None
    top_k: Annotated[int, Meta(ge=0, le=1_000_000)] | None = None
    top_p: Unit | None = None
    min_p: Unit | None = None
    typical_p: Unit | None = None
    xtc_probability: Unit | None = None
    xtc_threshold: Unit | None = None
    repeat_penalty: Annotated[float, Meta(ge=0.1, le=5.0)] | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None


def sampling_of(fields: Struct, **changed: Any) -> Sampling:
    """The fields of ``fields`` that Sampling has too, updated with ``changed``; None means the default."""
    given = {name: getattr(fields, name, None) for name in Sampling.__struct_fields__} | changed
    return Sampling(**{name: value for name, value in given.items() if value is not None})


def invalid(param: str, problem: str) -> InvalidRequestError:
    return InvalidRequestError(f"`{param}`: {problem}", param=param)


def parse_object(text: str, param: str) -> dict[str, Any]:
    """The JSON object in a text field. Raises InvalidRequestError."""
    found = json_object(text)
    if found is None:
        raise invalid(param, f"it must be a JSON object as text, nested at most {MAX_DEPTH} levels deep")
    return found


def set_field(fields: dict[str, Any], name: str, value: Any, alias: str) -> None:
    """Set a field that the client sent as ``alias``. Raises InvalidRequestError if it sent both, and they differ."""
    if value is None:
        return
    if fields.get(name) not in (None, value):
        raise invalid(alias, f"it is another name of `{name}`; send one of them")
    fields[name] = value


def unsupported(param: str, remedy: str = "") -> InvalidRequestError:
    return InvalidRequestError(f"`{param}` is not supported{remedy}", param=param, code="unsupported_field")


def parse_keep_alive(value: float | str | None) -> KeepAlive:
    """Ollama's ``keep_alive``: seconds, a duration such as ``10m`` or ``1h30m``, 0 = unload, negative = forever.

    Returns seconds, -1.0 for forever, None for the configured idle time. Raises InvalidRequestError.
    """
    if value is None:
        return None
    seconds = _seconds(value) if isinstance(value, str) else float(value)
    if seconds is None or not math.isfinite(seconds):
        raise invalid(
            "keep_alive",
            "send a number of seconds or a duration such as 10m or 1h30m; 0 unloads the model after the request, "
            "a negative number keeps it loaded",
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


def parse(body: bytes, kind: type[T]) -> T:
    """A JSON body as ``kind``, whose ``__post_init__`` checks rules across fields.

    Raises InvalidRequestError naming the field at fault.
    """
    return convert(decode_object(body), kind)


def decode_object(body: bytes) -> dict[str, Any]:
    """A request body that is one JSON object. Raises InvalidRequestError."""
    body = body.removeprefix(BOM_UTF8)  # some clients of Windows begin with it
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
        raise InvalidRequestError(_no_json(body, error), code="invalid_json") from None
    if not isinstance(value, dict):
        raise InvalidRequestError("the body must be a JSON object", code="invalid_json")
    return value


def _no_json(body: bytes, error: Exception) -> str:
    if not body.strip():
        return "the body is empty; send a JSON object"
    try:
        body.decode()
    except UnicodeDecodeError as wrong:
        return f"the body is not UTF-8 (byte {wrong.start}); send JSON as UTF-8, without compression"
    return f"the body is not valid JSON: {error}"


def convert(fields: dict[str, Any], kind: type[T], *, strict: bool = True) -> T:
    """``fields``, which lose those without effect, as a struct. Unless ``strict``, numbers and booleans may be strings.

    Raises InvalidRequestError naming an unknown or unsupported field, or one out of range.
    """
    if issubclass(kind, Body):
        for alias, name in kind.all_aliases().items():
            set_field(fields, name, fields.pop(alias, None), alias)
        kind.prepare(fields)
    for path, accepted in unimplemented_fields(kind):
        _drop(fields, path, accepted)
    known: tuple[str, ...] = getattr(kind, "__struct_encode_fields__", ())
    for name in fields:
        if name not in known:
            raise InvalidRequestError(
                f"unknown field `{name}`{_possible(name, known)}", param=name, code="unknown_field"
            )
    try:
        return msgspec.convert(fields, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise explained(str(error), kind) from None


def _possible(name: str, known: tuple[str, ...]) -> str:
    if near := get_close_matches(name, known):
        return f"; did you mean {' or '.join(f'`{each}`' for each in near)}?"
    return f"; the fields are {', '.join(f'`{each}`' for each in known)}" if 0 < len(known) <= _FEW else ""


def unimplemented_fields(kind: type) -> list[tuple[str, Unimplemented]]:
    """The unsupported fields by path, the inner fields of an object first. A class may implement those of its bases."""
    known: tuple[str, ...] = getattr(kind, "__struct_encode_fields__", ())
    aliases = kind.all_aliases() if issubclass(kind, Body) else {}
    found = {
        path: row
        for base in reversed(kind.__mro__)
        for path, row in UNIMPLEMENTED.get(base.__name__, {}).items()
        if path not in known and path not in aliases
    }
    return sorted(found.items(), key=lambda item: -item[0].count("."))


def _drop(fields: dict[str, Any], path: str, accepted: Unimplemented) -> None:
    """Remove the field at ``path``. Raises InvalidRequestError for a value that is not accepted."""
    for place, parent, name in _occurrences(fields, path):
        value = parent.pop(name)
        if accepted.is_neutral(value):
            continue
        if accepted.is_hint(value):
            ignore(path)
            continue
        shown = " or ".join(
            str(each).lower() if isinstance(each, bool) else repr(each) for each in accepted.neutral
        )
        raise unsupported(place, f", except as {shown}" if shown else "")


def ignore(path: str) -> None:
    """Name a field in the reply's header ``x-hearth-ignored``."""
    names = ignored_hints.get([])
    if path not in names:
        names.append(path)


def _occurrences(value: Any, path: str, place: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """Each occurrence of ``path`` in ``value``: its full path, the object that contains it, and its name there."""
    head, _, rest = path.partition(".")
    name = head.removesuffix("[]")
    if not isinstance(value, dict) or name not in value:
        return
    if not rest:
        yield place + name, value, name
    elif name == head:
        yield from _occurrences(value[name], rest, f"{place}{name}.")
    elif isinstance(value[name], list):
        for index, item in enumerate(value[name]):
            yield from _occurrences(item, rest, f"{place}{name}[{index}].")
