"""msgspec's refusals of a body in plain words, with the path of the field at fault and what it may be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import inspect

from gateway.base.errors import InvalidRequestError

_PATH = re.compile(r" - at `\$\.?(.*)`$", re.DOTALL)
_NAMED = re.compile(r"(?:missing required|contains unknown) field `(.*)`$", re.DOTALL)
_INDEX = re.compile(r"\[[^\]]*\]")
_NO_CHOICE = re.compile(r"Invalid (?:enum )?value (.*)", re.DOTALL)
_WRONG = re.compile(r"Expected `([^`]+)`(?: (of length )?([<>]=?) (\S+))?(?:, got `([^`]+)`)?")
_NO_MATCH = re.compile(r"Expected `str` matching regex .*", re.DOTALL)
_NOUNS = {
    "int": "a whole number", "float": "a number", "str": "a text", "bool": "true or false", "null": "null",
    "array": "a list", "object": "an object",
}  # fmt: skip
_LIMITS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}


def explained(problem: str, kind: type) -> InvalidRequestError:
    """msgspec's message, translated, with the field's path in front; the innermost field at fault is the ``param``."""
    match = _PATH.search(problem)
    path, text = (match[1], problem[: match.start()]) if match else ("", problem)
    found, tags = _types(kind, path)
    if wrong := _NO_CHOICE.match(text):
        literals = (each.values for each in found if isinstance(each, inspect.LiteralType))
        if possible := [value for values in (tags, *literals) for value in values if isinstance(value, str)]:
            text = f"{wrong[1]} is none of {', '.join(map(repr, possible))}"
    elif _NO_MATCH.match(text):
        schemas = (each.extra_json_schema for each in found if isinstance(each, inspect.Metadata))
        text = next((f"must be {schema['description']}" for schema in schemas if schema), text)
    else:
        text = _WRONG.sub(_plain, text)
    named = _NAMED.search(text)  # the path of a missing or unknown field ends at its parent
    if named:
        path = f"{path}.{named[1]}" if path else named[1]
    code = "unknown_field" if "unknown field" in text else None
    return InvalidRequestError(f"`{path}`: {text}" if path else text, param=path or None, code=code)


def _plain(wrong: re.Match[str]) -> str:
    kinds, length, sign, limit, given = wrong.groups()
    text = "must be " + " or ".join(_NOUNS.get(each, f"`{each}`") for each in kinds.split(" | "))
    if sign:
        unit = "character" if kinds == "str" else "element"
        text += f" of {_LIMITS[sign]} {limit}"
        text += f" {unit}{'' if limit == '1' else 's'}" if length else ""
    return text + (f", not {_NOUNS.get(given, given)}" if given else "")


def _types(kind: type, path: str) -> tuple[list[Any], list[Any]]:
    """The types at a path of msgspec's message, such as ``messages[0].role``, and the tags if it is a tag's."""
    found: list[Any] = list(_each(inspect.type_info(kind)))
    tags: list[Any] = []
    for part in _INDEX.sub(".[]", path).split(".") if path else []:
        structs = [each for each in found if isinstance(each, inspect.StructType)]
        tags = [each.tag for each in structs if each.tag_field == part]
        inner = [each.item_type for each in found if part == "[]" and isinstance(each, inspect.ListType)]
        inner += [field.type for each in structs for field in each.fields if field.encode_name == part]
        found = [each for one in inner for each in _each(one)]
    return found, tags


def _each(kind: inspect.Type) -> Iterator[inspect.Type]:
    """The members of a union, and the type below its description."""
    for each in getattr(kind, "types", (kind,)):
        yield each
        if isinstance(each, inspect.Metadata):
            yield from _each(each.type)
