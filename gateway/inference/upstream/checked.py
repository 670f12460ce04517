"""JSON from servers that cannot be held to a schema: found in the reply, checked, and asked for again."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from gateway.base.errors import ModelUnavailableError
from gateway.inference.interface import GenerateCall
from model_host.protocol import Message

ATTEMPTS = 3
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_DEEPEST = 64


def instructed(call: GenerateCall, wrong: str = "", problem: str = "") -> GenerateCall:
    """The call without a schema but with an instruction; after a ``wrong`` reply with that and its problem."""
    schema = json.dumps(call.json_schema, ensure_ascii=False)
    wish = f"Reply with JSON that follows this schema, and with nothing else: {schema}"
    if wrong:
        wish = f"{wish}\nThis reply did not, because {problem}: {wrong[:2000]}"
    if call.messages is None:
        given = call.prompt if isinstance(call.prompt, str) else ""
        return replace(call, json_schema=None, prompt=f"{given}\n{wish}\n")
    *before, last = call.messages
    told = [*before, replace(last, content=f"{last.text}\n\n{wish}")]
    if last.role != "user":
        told = [*call.messages, Message("user", wish)]
    return replace(call, json_schema=None, messages=told)


def found_json(text: str, schema: dict[str, Any] | bool) -> tuple[str, str | None]:
    """The JSON in a reply, and why it does not fit the schema, if so."""
    fenced = _FENCE.search(text)
    inner = (fenced[1] if fenced else text).strip()
    try:
        value = msgspec.json.decode(inner)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return inner, "it is not JSON"
    return inner, next(faults(value, schema, schema), None)


def failed(url: str, problem: str) -> ModelUnavailableError:
    return ModelUnavailableError(
        f"the upstream server {url} cannot be held to `json_schema`, and {ATTEMPTS} replies did not fit: {problem}; "
        "use a server with constrained output (llama-server, vLLM, hearth) or a larger model",
        code="upstream_json",
        retry_after=1.0,
    )


def faults(value: Any, schema: Any, root: Any, place: str = "$", depth: int = 0) -> Iterator[str]:
    """Why a value does not follow the schema, in the keywords that hearth enforces elsewhere, too."""
    if depth > _DEEPEST:
        yield f"{place} is nested too deeply"
        return
    if not isinstance(schema, dict):
        if schema is False:
            yield f"{place} is not allowed"
        return
    if isinstance(pointer := schema.get("$ref"), str):
        yield from faults(value, _referred(pointer, root), root, place, depth + 1)
    kinds = schema.get("type", [])
    wanted = [kinds] if isinstance(kinds, str) else kinds
    if wanted and not any(_is(value, kind) for kind in wanted):
        yield f"{place} is not of the type {' or '.join(wanted)}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{place} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{place} is not {schema['const']!r}"
    for name, least in (("anyOf", 1), ("oneOf", 1), ("allOf", len(schema.get("allOf", [])))):
        options = schema.get(name)
        if options and sum(_fits(value, each, root, place, depth) for each in options) < least:
            yield f"{place} does not fit {name}"
    if isinstance(value, dict):
        yield from _of_object(value, schema, root, place, depth)
    elif isinstance(value, list):
        yield from _of_size(len(value), schema, "Items", place)
        for index, item in enumerate(value):
            yield from faults(item, schema.get("items", True), root, f"{place}[{index}]", depth + 1)
    elif isinstance(value, str):
        yield from _of_size(len(value), schema, "Length", place)
        if (pattern := schema.get("pattern")) and not re.search(pattern, value):
            yield f"{place} does not match {pattern}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        yield from [f"{place} is out of range"] * (not low <= value <= high)


def _of_object(
    value: dict[str, Any], schema: dict[str, Any], root: Any, place: str, depth: int
) -> Iterator[str]:
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
    yield from (f"{place} has no {name!r}" for name in schema.get("required", []) if name not in value)
    for name, item in value.items():
        yield from faults(item, properties.get(name, rest), root, f"{place}.{name}", depth + 1)


def _of_size(size: int, schema: dict[str, Any], kind: str, place: str) -> Iterator[str]:
    if not schema.get(f"min{kind}", 0) <= size <= schema.get(f"max{kind}", size):
        yield f"{place} has the wrong length {size}"


def _fits(value: Any, schema: Any, root: Any, place: str, depth: int) -> bool:
    return next(faults(value, schema, root, place, depth + 1), None) is None


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, (object,)))


def _referred(pointer: str, root: Any) -> Any:
    found = root
    try:
        for name in pointer.removeprefix("#").split("/")[1:]:
            found = found[name.replace("~1", "/").replace("~0", "~")]
    except (LookupError, TypeError):
        return True
    return found
