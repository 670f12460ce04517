"""The keywords of JSON Schema 2020-12: those honoured, those that constrain nothing, and those refused."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from model_host.grammar.schema.parts import Part

TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_ARRAYS = "items prefixItems additionalItems minItems maxItems uniqueItems unevaluatedItems"
# Keywords that constrain values of one type. A schema without `type` is taken to mean the types of its keywords.
_OBJECTS = (
    "properties required additionalProperties unevaluatedProperties minProperties maxProperties propertyNames"
)
BY_TYPE: Mapping[str, frozenset[str]] = {
    "object": frozenset(_OBJECTS.split()),
    "array": frozenset(_ARRAYS.split()),
    "string": frozenset(["minLength", "maxLength", "pattern", "format"]),
    "number": BOUNDS | {"multipleOf"},
}
ANYWHERE = frozenset({"type", "enum", "const", "nullable", "$ref", "allOf", "anyOf", "oneOf"})
_ABOUT = "$schema $id $comment $anchor $vocabulary $defs definitions"
_FOR_READERS = "title description default example examples deprecated readOnly writeOnly discriminator"
ANNOTATIONS = frozenset(f"{_ABOUT} {_FOR_READERS}".split())
HONOURED = ANYWHERE.union(*BY_TYPE.values())

# Values with which otherwise refused keywords constrain nothing; and what to use instead of a refused keyword.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "propertyNames": (True, {}, {"type": "string"}),
    "uniqueItems": (False,),
    "unevaluatedItems": (True,),
    "unevaluatedProperties": (True, False),
    "patternProperties": ({},),
    "dependentRequired": ({},),
    "dependentSchemas": ({},),
    "multipleOf": (1, 1.0),
}
_INSTEAD: Mapping[str, str] = {
    "not": "say what is allowed instead",
    "if": "use `anyOf` with both cases",
    "patternProperties": "use `additionalProperties`",
    "dependentRequired": "use `anyOf` with both cases",
    "dependentSchemas": "use `anyOf` with both cases",
    "$dynamicRef": "use `$ref`",
    "$recursiveRef": "use `$ref`",
    "multipleOf": "only 1 is possible, for whole numbers",
    "uniqueItems": "check it afterwards",
}


def unsupported(part: Part) -> dict[str, str]:
    """The keywords of a schema that cannot be honoured, each with the reason."""
    found = {}
    for key, value in part.schema.items():
        if key == "$id" and part.path != "#":
            found[key] = "changes below the root what `$ref` points to, which is not supported"
        elif key in ANNOTATIONS or key.startswith("x-") or _constrains_nothing(key, value):
            continue
        elif key not in HONOURED or key in _NEUTRAL:
            hint = f"; {_INSTEAD[key]}" if key in _INSTEAD else ""
            found[key] = f"has the keyword `{key[:60]}`, which is not supported{hint}"
    return found


def _constrains_nothing(key: str, value: Any) -> bool:
    return any(type(value) is type(one) and value == one for one in _NEUTRAL.get(key, ()))


def types_of(part: Part) -> set[str] | None:
    """The types that a schema names, with "integer" for "number"; None if it has no `type`."""
    if "type" not in part.schema:
        return None
    named = part.schema["type"]
    types = named if isinstance(named, list) else [named]
    if not types or any(not isinstance(kind, str) or kind not in TYPES for kind in types):
        raise part.error(f"has the type {json.dumps(named)[:60]}; it must be of {', '.join(TYPES)}", "type")
    found = set(types) | ({"integer"} if "number" in types else set())
    return found | {"null"} if part.schema.get("nullable") is True else found


def count(part: Part, key: str) -> int | None:
    """The value of a keyword that must be a whole number, 0 or more; None if it is absent."""
    if key not in part.schema:
        return None
    value = part.schema[key]
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value < math.inf
        or value % 1
    ):
        raise part.error(
            f"has {json.dumps(value)[:40]} for `{key}`; it must be a whole number, 0 or more", key
        )
    return int(value)


def greatest(parts: list[Part], key: str) -> int:
    """The strictest lower limit; 0 if there is none."""
    return max((found for part in parts if (found := count(part, key)) is not None), default=0)


def least(parts: list[Part], key: str) -> int | None:
    """The strictest upper limit; None if there is none."""
    return min((found for part in parts if (found := count(part, key)) is not None), default=None)
