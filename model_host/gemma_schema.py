"""GBNF for arguments in Gemma's form of tool calls. Pure.

Names, types, `enum`, `const`, `required`, the length of strings and the range of integers are enforced; what else a
schema says is refused or, unless it is strict, left out. Properties come in alphabetical order, as
Gemma's templates print them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from model_host import json_text
from model_host.gbnf.syntax import GrammarError

MAX_NESTING = 64
_BARE = re.compile(r"[\w$.-]+")
_TYPES = frozenset({"object", "array", "string", "integer", "number", "boolean", "null"})
_ENFORCED = frozenset(
    [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "nullable",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "$ref",
    ]
)
_ANNOTATIONS = frozenset(
    [
        "$schema",
        "$id",
        "$comment",
        "$anchor",
        "$defs",
        "definitions",
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
    ]
)


class Quoting(Struct, frozen=True):
    """Expressions for a quote marker, for a ``piece`` of text without one, and for one ``character`` of it."""

    quote: str
    piece: str
    character: str


def gemma_arguments(schema: dict[str, Any], quoting: Quoting, *, strict: bool = False) -> str:
    """A grammar with the rule ``root`` for an object.

    Raises GrammarError for keywords that choose between schemas in a way that is not supported; with ``strict`` for
    every keyword that is not enforced.
    """
    return _Converter(schema, quoting, strict).grammar()


class _Converter:
    """Methods return GBNF expressions; every subschema is a rule of its own."""

    def __init__(self, schema: dict[str, Any], quoting: Quoting, strict: bool) -> None:
        self._schema = schema
        self._strict = strict
        self._quote = quote = quoting.quote
        self._references: dict[str, str] = {}
        self._depth = 0
        self._rules = {
            "character": quoting.character,
            "string": f"{quote} {quoting.piece}* {quote}",
            "number": json_text.NUMBER,
            "integer": json_text.integer(None, None),
            "boolean": '"true" | "false"',
            "null": '"null"',
            "name": r"[a-zA-Z_] [a-zA-Z0-9_-]{0,63}",
            "pair": '(name | string) ":" value',
            "object": '"{" (pair ("," pair)*)? "}"',
            "array": '"[" (value ("," value)*)? "]"',
            "value": "object | array | string | number | boolean | null",
        }

    def grammar(self) -> str:
        self._references["#"] = "root"
        self._rules["root"] = ""
        self._rules["root"] = self._visit(self._schema)
        return "".join(f"{name} ::= {body}\n" for name, body in self._rules.items())

    def _rule(self, body: str) -> str:
        name = f"r{len(self._rules)}"
        self._rules[name] = body
        return name

    def _sub(self, schema: Any) -> str:
        return self._rule(self._visit(schema))

    def _visit(self, schema: Any) -> str:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise GrammarError(f"the JSON schema is nested deeper than {MAX_NESTING} levels")
        try:
            return self._expression(schema)
        finally:
            self._depth -= 1

    def _expression(self, schema: Any) -> str:
        if schema is True:
            return "value"
        if not isinstance(schema, dict):
            raise GrammarError("a JSON schema is an object or true")
        left_out = [key for key in schema if key not in _ENFORCED and key not in _ANNOTATIONS]
        if self._strict and left_out:
            raise GrammarError(f"the JSON schema keyword `{left_out[0][:60]}` is not enforced for this model")
        for key in ("not", "if", "allOf", "dependentSchemas", "patternProperties"):
            if key in schema and not (key == "allOf" and _single(schema[key])):
                raise GrammarError(f"the JSON schema keyword `{key}` is not supported")
        if "allOf" in schema:
            return self._visit({**schema["allOf"][0], **{k: v for k, v in schema.items() if k != "allOf"}})
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        for key in ("anyOf", "oneOf"):
            if key in schema:
                return self._any_of(key, schema[key])
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            if not isinstance(values, list) or not values:
                raise GrammarError("`enum` needs a list of values")
            return " | ".join(self._constant(value) for value in values)
        return self._typed(schema)

    def _reference(self, reference: Any) -> str:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise GrammarError("`$ref` may only point into the same schema")
        if reference not in self._references:
            target: Any = self._schema
            for part in reference[1:].split("/")[1:]:
                key = part.replace("~1", "/").replace("~0", "~")
                if not isinstance(target, dict) or key not in target:
                    raise GrammarError(f"`$ref` {reference[:100]} points to nothing in the schema")
                target = target[key]
            name = self._references[reference] = self._rule("")
            self._rules[name] = self._visit(target)
        return self._references[reference]

    def _any_of(self, key: str, schemas: Any) -> str:
        if not isinstance(schemas, list) or not schemas:
            raise GrammarError(f"`{key}` needs a list of schemas")
        return " | ".join(self._sub(schema) for schema in schemas)

    def _typed(self, schema: dict[str, Any]) -> str:
        named = schema.get("type", "object" if "properties" in schema else None)
        if named is None:
            return "value"
        kinds = named if isinstance(named, list) else [named]
        if not kinds or any(not isinstance(kind, str) or kind not in _TYPES for kind in kinds):
            raise GrammarError(f"`type` must be one of {', '.join(sorted(_TYPES))}")
        if schema.get("nullable") is True and "null" not in kinds:
            kinds = [*kinds, "null"]
        special: dict[str, Callable[[dict[str, Any]], str]] = {"object": self._object, "array": self._array}
        if "minLength" in schema or "maxLength" in schema:
            special["string"] = self._string
        if "minimum" in schema or "maximum" in schema:
            special["integer"] = self._integer
        return " | ".join(self._rule(special[kind](schema)) if kind in special else kind for kind in kinds)

    def _string(self, schema: dict[str, Any]) -> str:
        least, most = schema.get("minLength", 0), schema.get("maxLength")
        if any(type(limit) is not int or limit < 0 for limit in (least, 0 if most is None else most)):
            raise GrammarError("`minLength` and `maxLength` must be whole numbers, 0 or more")
        return f"{self._quote} {json_text.repeated('character', least, most)} {self._quote}"

    def _integer(self, schema: dict[str, Any]) -> str:
        limits = [schema.get(key) for key in ("minimum", "maximum")]
        if any(limit is not None and type(limit) is not int for limit in limits):
            raise GrammarError("`minimum` and `maximum` must be whole numbers")
        return json_text.integer(*limits)

    def _array(self, schema: dict[str, Any]) -> str:
        item = self._sub(schema.get("items", True))
        return f'"[" ({item} ("," {item})*)? "]"'

    def _object(self, schema: dict[str, Any]) -> str:
        properties, required = schema.get("properties", {}), schema.get("required", [])
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise GrammarError("`properties` needs an object and `required` a list")
        properties = properties | {name: True for name in required if name not in properties}
        if not properties:
            return '"{}"' if schema.get("additionalProperties") is False else "object"
        # Read backwards: what may follow with something before it, and with nothing.
        after = first = ""
        for name, inner in sorted(properties.items(), key=lambda item: item[0].lower(), reverse=True):
            pair = self._rule(f'{self._name(name)} ":" {self._sub(inner)}')
            opening = f"{pair} {after}"
            if name in required:
                first = self._rule(opening)
                after = self._rule(f'"," {pair} {after}')
            else:
                first = self._rule(f"{opening} | {first}" if first else f"({opening})?")
                after = self._rule(f'("," {pair})? {after}')
        return f'"{{" {first} "}}"'

    def _name(self, name: str) -> str:
        return json_text.literal(name) if _BARE.fullmatch(name) else self._constant(name)

    def _constant(self, value: Any) -> str:
        if isinstance(value, str):
            return f"{self._quote} {json_text.literal(value)} {self._quote}"
        if isinstance(value, dict | list):
            raise GrammarError("`enum` and `const` may have strings, numbers, booleans and null only")
        return json_text.constant(value)


def _single(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict)
