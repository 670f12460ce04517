"""GBNF for a JSON schema: every text the grammar allows parses, and satisfies the schema. Pure.

A keyword is honoured or refused, never ignored; only annotations are. Where a schema leaves a choice, the grammar
may allow less than the schema (properties in the order of the schema, none that it does not list). ``oneOf`` is
taken as ``anyOf``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from model_host import json_text
from model_host.gbnf.syntax import GrammarError

MAX_SCHEMA_BYTES = 64 * 1024
MAX_NESTING = 64

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
_KEYWORDS: Mapping[str, frozenset[str]] = {
    "object": frozenset({"properties", "required", "additionalProperties"}),
    "array": frozenset({"items", "prefixItems", "minItems", "maxItems"}),
    "string": frozenset({"minLength", "maxLength", "pattern", "format"}),
    "integer": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}),
    "number": frozenset(),
    "boolean": frozenset(),
    "null": frozenset(),
}
_VALUE = 'object | array | string | number | "true" | "false" | "null"'
_FIXED = {  # rules that do not depend on the schema, with the rules they use
    "ws": ('" "?', ()),
    "char": (json_text.CHARACTER, ()),
    "string": (r'"\"" char* "\""', ("char",)),
    "number": (json_text.NUMBER, ()),
    "value": (_VALUE, ("object", "array", "string", "number")),
    "pair": ('string ":" ws value', ("string", "ws", "value")),
    "object": ('"{" (pair ("," ws pair)*)? "}"', ("pair", "ws")),
    "array": ('"[" (value ("," ws value)*)? "]"', ("value", "ws")),
}


def schema_to_grammar(schema: dict[str, Any] | bool) -> str:
    """GBNF with the rule ``root``. Raises GrammarError for what is too large, too deep or not supported."""
    size = len(msgspec.json.encode(schema))
    if size > MAX_SCHEMA_BYTES:
        raise GrammarError(f"the JSON schema has {size} bytes, over the limit of {MAX_SCHEMA_BYTES}")
    return _Converter(schema).grammar()


class _Converter:
    """One schema on its way to a grammar. Methods return GBNF expressions; every subschema is a rule of its own."""

    def __init__(self, schema: dict[str, Any] | bool) -> None:
        self._schema = schema
        self._rules: dict[str, str] = {}
        self._references: dict[str, str] = {}
        self._depth = 0

    def grammar(self) -> str:
        self._references["#"] = "root"
        self._rules["root"] = ""
        self._rules["root"] = self._visit(self._schema)
        return "".join(f"{name} ::= {body}\n" for name, body in self._rules.items())

    def _rule(self, body: str) -> str:
        """The name of a rule with this body."""
        name = f"r{len(self._rules)}"
        self._rules[name] = body
        return name

    def _fixed(self, name: str) -> str:
        if name not in self._rules:
            body, needed = _FIXED[name]
            self._rules[name] = body
            for other in needed:
                self._fixed(other)
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
            return self._fixed("value")
        if not isinstance(schema, dict):
            raise GrammarError(f"a JSON schema is an object or true, not {json.dumps(schema)[:40]}")
        words = {key: value for key, value in schema.items() if key not in _ANNOTATIONS}
        if "allOf" in words and isinstance(words["allOf"], list) and len(words) == len(words["allOf"]) == 1:
            return self._visit(words["allOf"][0])
        for key, method in (("$ref", self._reference), ("anyOf", self._any_of), ("oneOf", self._any_of)):
            if key in words:
                _only(words, {key}, f"beside `{key}`")
                return method(words[key])
        if "const" in words or "enum" in words:
            return self._constants(words)
        types = _types(words)
        if types is None:
            return self._fixed("value")
        _only(
            words, {"type"}.union(*(_KEYWORDS[kind] for kind in types)), f"for the type {' or '.join(types)}"
        )
        return " | ".join(self._rule(self._typed(kind, words)) for kind in types)

    # ------------------------------------------------------------------ keywords that stand alone

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
            # Named before it is visited: a schema may contain itself.
            name = self._references[reference] = self._rule("")
            self._rules[name] = self._visit(target)
        return self._references[reference]

    def _any_of(self, schemas: Any) -> str:
        if not isinstance(schemas, list) or not schemas:
            raise GrammarError("`anyOf` and `oneOf` need a list of schemas")
        return " | ".join(self._sub(schema) for schema in schemas)

    def _constants(self, words: dict[str, Any]) -> str:
        _only(words, {"const", "enum", "type"}, "beside `const` or `enum`")
        values = words.get("enum", [words.get("const")])
        if not isinstance(values, list):
            raise GrammarError("`enum` needs a list of values")
        if "const" in words:
            values = [value for value in values if _same(value, words["const"])]
        kinds = _types(words)
        fitting = [value for value in values if kinds is None or any(_is(value, kind) for kind in kinds)]
        if not fitting:
            raise GrammarError("`enum` or `const` leaves no value to choose")
        return " | ".join(json_text.constant(value) for value in fitting)

    # ------------------------------------------------------------------ types

    def _typed(self, kind: str, words: dict[str, Any]) -> str:
        by_type: dict[str, Callable[[dict[str, Any]], str]] = {
            "object": self._object,
            "array": self._array,
            "string": self._string,
            "integer": lambda words: json_text.integer(*_integer_range(words)),
            "number": lambda _: self._fixed("number"),
            "boolean": lambda _: '"true" | "false"',
            "null": lambda _: '"null"',
        }
        return by_type[kind](words)

    def _string(self, words: dict[str, Any]) -> str:
        least, most = _count(words, "minLength") or 0, _count(words, "maxLength")
        limited = "minLength" in words or "maxLength" in words
        shaped = [key for key in ("pattern", "format") if key in words]
        known = words.get("format") in json_text.FORMATS
        if (limited and ("pattern" in words or known)) or ("pattern" in words and known):
            raise GrammarError(f"`{shaped[0]}` cannot be combined with another limit on the same string")
        if "pattern" in words:
            inside = json_text.pattern(str(words["pattern"]))
        elif known:
            inside = json_text.FORMATS[words["format"]]
        else:  # a format that is not known is an annotation, as the standard has it
            inside = json_text.repeated(self._fixed("char"), least, most)
        return rf'"\"" {inside} "\""'

    def _array(self, words: dict[str, Any]) -> str:
        if "prefixItems" in words:
            return self._tuple(words)
        least, most = _count(words, "minItems") or 0, _count(words, "maxItems")
        if most is not None and most < least:
            raise GrammarError(f"`minItems` {least} is over `maxItems` {most}")
        if most == 0:
            return '"[]"'
        item, ws = self._sub(words.get("items", True)), self._fixed("ws")
        more = json_text.repeated(
            self._rule(f'"," {ws} {item}'), max(0, least - 1), None if most is None else most - 1
        )
        return f'"[" {item} {more} "]"' if least else f'"[" ({item} {more})? "]"'

    def _tuple(self, words: dict[str, Any]) -> str:
        items = words["prefixItems"]
        if not isinstance(items, list) or not items:
            raise GrammarError("`prefixItems` needs a list of schemas")
        if (_count(words, "minItems") or 0) > len(items) or (_count(words, "maxItems") or len(items)) < len(
            items
        ):
            raise GrammarError(
                f"`prefixItems` lists {len(items)} items; `minItems` or `maxItems` wants another number"
            )
        comma = f' "," {self._fixed("ws")} '
        return f'"[" {comma.join(self._sub(item) for item in items)} "]"'

    def _object(self, words: dict[str, Any]) -> str:
        properties, required = words.get("properties", {}), words.get("required", [])
        others = words.get("additionalProperties", True)
        if not isinstance(properties, dict) or not isinstance(required, list):
            raise GrammarError("`properties` needs an object and `required` a list")
        missing = [name for name in required if name not in properties]
        if missing and others is False:
            raise GrammarError(f"`required` names {missing[0]!r}, which no property allows")
        properties = properties | dict.fromkeys(missing, others)
        if properties:
            return self._listed(properties, set(required))
        if others is False:
            return '"{}"'
        pair = self._rule(f'{self._fixed("string")} ":" {self._fixed("ws")} {self._sub(others)}')
        return f'"{{" ({pair} ("," ws {pair})*)? "}}"'

    def _listed(self, properties: dict[str, Any], required: set[str]) -> str:
        """Properties in their order. Read backwards: what may follow with something before it, and with nothing."""
        ws = self._fixed("ws")
        after = first = ""
        for name, schema in reversed(properties.items()):
            pair = self._rule(f'{json_text.constant(name)} ":" {ws} {self._sub(schema)}')
            opening = f"{pair} {after}"
            if name in required:
                first = self._rule(opening)
                after = self._rule(f'"," {ws} {pair} {after}')
            else:
                first = self._rule(f"{opening} | {first}" if first else f"({opening})?")
                after = self._rule(f'("," {ws} {pair})? {after}')
        return f'"{{" {first} "}}"'


def _only(words: Iterable[str], allowed: set[str], where: str) -> None:
    for key in words:
        if key not in allowed:
            raise GrammarError(f"the JSON schema keyword `{key[:60]}` is not supported {where}")


def _types(words: dict[str, Any]) -> list[str] | None:
    """The types a schema names or implies; None when any value will do."""
    named = words.get("type")
    if named is None:
        implied = [kind for kind, keys in _KEYWORDS.items() if keys & words.keys()]
        return implied or (None if words.keys() <= {"const", "enum"} else [*_KEYWORDS])
    types = named if isinstance(named, list) else [named]
    if not types or any(not isinstance(kind, str) or kind not in _KEYWORDS for kind in types):
        raise GrammarError(f"`type` is {json.dumps(named)[:60]}; it must be one of {', '.join(_KEYWORDS)}")
    return types


def _count(words: dict[str, Any], key: str) -> int | None:
    value = words.get(key)
    if value is None and key not in words:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise GrammarError(f"`{key}` is {json.dumps(value)[:40]}; it must be a whole number, 0 or more")
    return value


def _integer_range(words: dict[str, Any]) -> tuple[int | None, int | None]:
    """Bounds, both included."""
    bounds: dict[str, int] = {}
    for key in _KEYWORDS["integer"] & words.keys():
        value = words[key]
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            raise GrammarError(f"`{key}` is {json.dumps(value)[:40]}; it must be a whole number")
        bounds[key] = int(value)
    low = [bounds[k] + shift for k, shift in (("minimum", 0), ("exclusiveMinimum", 1)) if k in bounds]
    high = [bounds[k] - shift for k, shift in (("maximum", 0), ("exclusiveMaximum", 1)) if k in bounds]
    return max(low, default=None), min(high, default=None)


def _is(value: Any, kind: str) -> bool:
    if kind in {"integer", "number"}:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        return not isinstance(value, bool) and (whole or (kind == "number" and isinstance(value, float)))
    return isinstance(
        value, {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}[kind]
    )


def _same(a: Any, b: Any) -> bool:
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)
