"""Keywords that cannot be honoured are refused with their path and the reason; none is ignored."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from model_host.grammar.gbnf.syntax import GrammarError
from model_host.grammar.schema.converter import schema_to_grammar
from tests.model_host.grammar.gbnf.sentences import takes

OBJECT = {"type": "object", "properties": {"a": {"type": "integer"}}}
REFUSED: list[tuple[Any, str]] = [
    (False, "allows no value (at #)"),
    ({"properties": {"a": {"type": "nonsense"}}}, 'the type "nonsense"; it must be of object'),
    ({"properties": {"a/b": {"items": {"not": {}}}}}, "(at #/properties/a~1b/items/not)"),
    ({"type": "number", "multipleOf": 3}, "`multipleOf`, which is not supported; only 1"),
    ({"type": "array", "uniqueItems": True}, "`uniqueItems`"),
    ({"type": "array", "contains": {}}, "`contains`"),
    (
        {"type": "array", "items": [True], "prefixItems": [True]},
        "use `prefixItems` for a list of them (at #/items)",
    ),
    ({"type": "object", "patternProperties": {"a": {}}}, "`patternProperties`"),
    ({"type": "object", "propertyNames": {"maxLength": 3}}, "`propertyNames`"),
    ({"type": "object", "minProperties": 2}, "`minProperties` that is not supported"),
    ({"type": "object", "maxProperties": 2}, "`maxProperties` that is not supported"),
    ({"type": "object", "dependentRequired": {"a": ["b"]}}, "`dependentRequired`"),
    ({"if": {}, "then": {}}, "`if`"),
    ({"$dynamicRef": "#a"}, "`$dynamicRef`"),
    ({"contentEncoding": "base64"}, "`contentEncoding`"),
    ({"typ": "string"}, "`typ`"),
    ({"properties": {"a": {"$id": "http://x/y"}}}, "(at #/properties/a/$id)"),
    ({"type": "string", "format": "idn-email"}, "the format 'idn-email'; supported are date, time"),
    ({"type": "string", "pattern": "^(?=x)y$"}, "'(?=x)y$', character 2, is not supported (at #/pattern)"),
    ({"type": "string", "pattern": "^(a$"}, "'$', character 4, is not supported"),
    ({"type": "string", "pattern": "^(a"}, "has a `(` without a `)`"),
    ({"type": "string", "pattern": "^a)(b$"}, "has a `)` without a `(`"),
    ({"type": "string", "pattern": "a**"}, "character 3, is not supported"),
    ({"type": "string", "pattern": "[z-a]"}, "a range that ends before it begins"),
    ({"type": "string", "pattern": "[a"}, "`[` without a `]`"),
    ({"type": "string", "pattern": "[]"}, "a set without any character"),
    ({"type": "string", "pattern": "\\bx"}, "'\\\\bx', character 1, is not supported"),
    ({"type": "string", "pattern": "(a)\\1"}, "is not supported"),
    ({"type": "string", "pattern": "\\p{L}"}, "is not supported"),
    ({"type": "string", "pattern": "x\\"}, "has an unknown escape"),
    ({"type": "string", "pattern": "\\u{110000}"}, "beyond Unicode"),
    ({"type": "string", "pattern": "a{3000}"}, "more than 2000 times"),
    ({"type": "string", "pattern": "a{3,1}"}, "at most 1 but at least 3 times"),
    ({"type": "string", "pattern": 3}, "must be a string"),
    ({"type": "string", "pattern": "^a+$", "maxLength": 3}, "whose `pattern` allows 1 or more characters"),
    ({"type": "string", "pattern": "^a$", "format": "date"}, "another one holds already"),
    ({"type": "string", "maxLength": 10**9}, "counts more than 2000 characters"),
    ({"type": "string", "minLength": 3, "maxLength": 2}, "at least 3 and at most 2"),
    ({"type": "string", "minLength": -1}, "whole number, 0 or more (at #/minLength)"),
    ({"type": "string", "minLength": True}, "whole number"),
    ({"type": "array", "minItems": 3, "maxItems": 1}, "at least 3 and at most 1 items"),
    ({"type": "array", "prefixItems": []}, "list of schemas for `prefixItems`"),
    ({"type": "array", "minItems": 10**6}, "counts more than 2000 items"),
    (
        {"type": "integer", "minimum": 5, "maximum": 4},
        "allows no integer: the range is 5 to 4 (at #/maximum)",
    ),
    ({"type": "integer", "minimum": 10**20}, "allows no integer"),
    ({"type": "number", "exclusiveMinimum": 1, "maximum": 1}, "allows no number"),
    ({"type": "integer", "minimum": "1"}, "must be a number (at #/minimum)"),
    (
        {"type": "object", "required": ["x"], "additionalProperties": False},
        "requires 'x', which #/additional",
    ),
    (
        {"allOf": [{"unevaluatedProperties": False}, {"required": ["x"]}]},
        "requires 'x', which #/allOf/0/unevaluatedProperties does not allow",
    ),
    ({"type": "object", "required": "x"}, "must be a list of names"),
    ({"type": "object", "properties": []}, "needs an object for `properties`"),
    ({"properties": {"a": 3}}, "needs an object, true or false, not '3' (at #/properties/a)"),
    ({"$ref": "http://example.com/schema"}, "can only refer to its own parts"),
    ({"$ref": "#anchor"}, "can only refer to its own parts"),
    ({"$ref": "#/missing"}, "refers to '#/missing', which does not exist (at #/$ref)"),
    ({"$ref": "#"}, "refers to itself"),
    (
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}, True]}}},
        "refers to itself without anything between",
    ),
    ({"enum": []}, "leaves no value to choose (at #/enum)"),
    ({"enum": "a"}, "an `enum` that is not a list"),
    ({"enum": ["a"], "type": "integer"}, "leaves no value"),
    ({"enum": ["a"], "pattern": "a"}, "`pattern` beside `enum` or `const`"),
    ({"allOf": [{"const": 1}, {"const": True}]}, "leaves no value"),
    ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "leaves no type"),
    ({"anyOf": []}, "without a list of schemas (at #/anyOf)"),
    ({"anyOf": [False]}, "leaves no branch of `anyOf`"),
    ({"oneOf": [OBJECT, OBJECT]}, "might satisfy both #/oneOf/0 and #/oneOf/1; use `anyOf`"),
    ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, "might satisfy both"),
    ({"oneOf": [{"properties": {"a": True}}, {"type": "string"}]}, "might satisfy both"),
    ({"description": "x" * 70_000}, "over the limit of 65536"),
    ({"enum": ["\ud800"]}, "surrogate"),
    ({"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]}, "has no finite value"),
]


@pytest.mark.parametrize(("schema", "says"), REFUSED)
def test_what_cannot_be_honoured_is_refused(schema: Any, says: str) -> None:
    with pytest.raises(GrammarError) as raised:
        schema_to_grammar(schema)
    assert says in str(raised.value)


LEFT_OUT: list[tuple[Any, str]] = [
    ({"type": "integer", "multipleOf": 3}, "4"),
    ({"type": "array", "items": {"type": "null"}, "uniqueItems": True}, "[null,null]"),
    ({"type": "string", "format": "iri"}, '"x"'),
    ({"type": "string", "pattern": "(?=x)"}, '"y"'),
    ({"type": "object", "minProperties": 2}, "{}"),
    ({"oneOf": [{"type": "number"}, {"type": "integer"}]}, "4"),
    ({"anyOf": [{"not": {}, "type": "null"}, {"if": {}, "const": 2}]}, "2"),
    ({"enum": ["a"], "pattern": "b"}, '"a"'),
]


@pytest.mark.parametrize(("schema", "text"), LEFT_OUT)
def test_lenience_leaves_out_what_is_not_supported(schema: Any, text: str) -> None:
    with pytest.raises(GrammarError):
        schema_to_grammar(schema)
    grammar = schema_to_grammar(schema, lenient=True)
    assert takes(grammar, text)
    assert not takes(grammar, '{"surely": "wrong" }')


def test_grammars_that_grow_too_large_are_refused() -> None:
    wide = {f"p{i}": {"enum": [f"{i}.{j}" for j in range(90)]} for i in range(90)}
    deep = {"type": "object", "properties": {f"q{i}": {"properties": wide} for i in range(1)}}
    schema_to_grammar(deep)
    product = {"allOf": [{"anyOf": [{"minimum": i * 10 + j} for j in range(10)]} for i in range(10)]}
    with pytest.raises(GrammarError, match="too large a grammar"):
        schema_to_grammar(product)


def test_a_long_name_takes_little_memory() -> None:
    # Stored as one prefix a character, it took 1.7 GB.
    schema = {"properties": {"a" * 60_000: {}}, "additionalProperties": {}}
    tracemalloc.start()
    try:
        with pytest.raises(GrammarError, match="too large a grammar"):
            schema_to_grammar(schema)
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
