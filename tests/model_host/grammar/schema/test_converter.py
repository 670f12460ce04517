"""JSON schemas to grammars: accepted texts are valid, and examples are accepted."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest

from model_host.grammar.schema.converter import schema_to_grammar
from tests.model_host.grammar.gbnf.sentences import takes

NODE = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "required": ["next"],
}
ANIMAL = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SHAPES = [
    {
        "type": "object",
        "properties": {"kind": {"const": "circle"}, "r": {"type": "integer"}},
        "required": ["kind"],
    },
    {"type": "object", "properties": {"kind": {"enum": ["box", "cube"]}}, "required": ["kind"]},
]
# Schema, values whose texts the grammar must take, texts it must not take.
CASES: list[tuple[Any, list[Any], list[str]]] = [
    (True, [1, "a", None, [1, {"a": [True]}], {}], ["", "nul", "[1,]", "{'a': 1}", "1 2"]),
    ({}, [1, {"a": [True]}], ["nul"]),
    (
        {"type": "string", "minLength": 2, "maxLength": 3},
        ["ab", "äöü", "\n\\x"[:3]],
        ['"a"', '"abcd"', '"a"b"'],
    ),
    ({"type": "string", "maxLength": 0}, [""], ['"a"']),
    ({"type": "string", "pattern": "^T-[0-9]{8}(\\.c[0-9]+)?$"}, ["T-20261120", "T-20261120.c2"], ['"T-1"']),
    ({"type": "string", "pattern": "b+"}, ["b", "abba", "b\n"], ['"a"', '""']),
    ({"type": "string", "pattern": "^a|b$"}, ["ax", "xb", "a", "b"], ['"xa"', '"bx"']),
    ({"type": "string", "pattern": '^[^a-y"]$'}, ["z", "\n", "\\", "€"], ['"a"', '"""', '"\\""']),
    ({"type": "string", "pattern": "^[\\w-]{1,3}\\s\\S$", "maxLength": 5}, ["a-_ x"], ['"a-_-x"', '"a b c"']),
    ({"type": "string", "pattern": "^\\u0041\\x42\\t(?:c|(?<n>d))\\$\\/.$"}, ["AB\tc$/x"], ['"AB c$/x"']),
    ({"type": "string", "format": "date"}, ["2026-11-21", "2024-02-29"], ['"2026-13-01"', '"2026-02-29"']),
    ({"type": "string", "format": "time"}, ["23:59:59Z", "01:02:03.5+01:00"], ['"24:00:00Z"', '"01:02:03"']),
    ({"type": "string", "format": "uuid"}, ["123e4567-e89b-12d3-a456-426614174000"], ['"123"']),
    ({"type": "string", "format": "ipv4"}, ["0.10.99.255"], ['"1.2.3"', '"1.2.3.256"', '"01.2.3.4"']),
    ({"type": "string", "format": "email"}, ["a.b@c.org"], ['"a@b"', '"a..b@c.org"']),
    ({"type": "string", "format": "duration"}, ["P1Y2M3DT4H5M6S", "PT5M", "P2W"], ['"P"', '"PT"', '"P1YT"']),
    ({"type": "integer"}, [0, -5, 12345], ["01", "1.5", "-", "1e3"]),
    ({"type": "integer", "minimum": -3, "maximum": 120}, [-3, 0, 99, 120], ["-4", "121", "1000", "-0"]),
    ({"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 30}, [10, 29], ["9", "30"]),
    ({"type": "integer", "minimum": 0.5, "maximum": 2.5}, [1, 2], ["0", "3"]),
    ({"type": "number"}, [0, -1.5, 1e5], ["1.", ".5", "+1"]),
    ({"type": "number", "minimum": 0, "maximum": 1}, [0, 0.5, 1, 0.999999], ["-0.1", "1.1", "1e-1", "2"]),
    (
        {"type": "number", "exclusiveMinimum": -0.25, "maximum": 12.5},
        [-0.2, 12.5, 3],
        ["-0.25", "12.51", "-1"],
    ),
    ({"type": "number", "multipleOf": 1}, [3], ["3.5"]),
    ({"minimum": 3}, [3, 4.5], ["2", '"a"']),
    ({"type": ["boolean", "null"]}, [True, None], ["1", '"true"']),
    ({"type": "string", "nullable": True}, [None, "a"], ["1"]),
    ({"enum": ["red", 3, None, {"a": [1]}]}, ["red", 3, None], ['"blue"', "4"]),
    ({"enum": ["red", 3, 4.5], "type": ["integer", "string"], "minLength": 2}, ["red", 3], ["4.5"]),
    ({"const": 'say "hi" \\ é\n'}, ['say "hi" \\ é\n'], ['"say hi"']),
    (
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
        [[1], [1, 2, 3]],
        ["[]", "[1,2,3,4]", '["a"]'],
    ),
    ({"type": "array", "maxItems": 0}, [[]], ["[1]"]),
    (
        {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "integer"}],
            "items": False,
            "minItems": 2,
        },
        [["a", 1]],
        ["[1]", '["a"]', '["a",1,2]'],
    ),
    (
        {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "integer"}],
            "items": {"type": "null"},
        },
        [[], ["a"], ["a", 1], ["a", 1, None, None]],
        ["[1]", '["a",1,2]'],
    ),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "items": [{"type": "string"}, {"type": "integer"}],
            "additionalItems": False,
            "minItems": 1,
        },
        [["a"], ["a", 1]],
        ["[]", "[1]", '["a",1,2]'],
    ),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "array",
            "items": [{"type": "string"}],
            "additionalItems": {"type": "null"},
        },
        [[], ["a"], ["a", None]],
        ["[1]", '["a",1]'],
    ),
    (
        {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}], "minItems": 1, "maxItems": 1},
        [[1]],
        ["[1,2]"],
    ),
    (
        {"type": "array", "prefixItems": [{"const": 1}], "minItems": 3, "maxItems": 4},
        [[1, "a", "b"], [1, 2, 3, 4]],
        ["[1,2]", "[1,2,3,4,5]"],
    ),
    (
        {
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
            "required": ["b"],
            "type": "object",
        },
        [{"a": 1, "b": "x"}, {"b": "x"}],
        ["{}", '{"a":1}', '{"b":"x","a":1}', '{"b":"x","c":1}'],
    ),
    ({"properties": {"a": True, "b": True}}, [{}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}], ['{,"b":1}', "3"]),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"x": 1, "y": 2}], ['{"x":"1"}']),
    (
        {
            "properties": {"ab": True, "ac": False},
            "additionalProperties": {"type": "integer"},
            "type": "object",
        },
        [{}, {"ab": "x"}, {"ab": "x", "abc": 1, "a": 2}, {"b": 1}, {"ac c": 1}],
        ['{"ac":1}', '{"x":1,"ab":2}', '{"x":"1"}', '{"x":1,"ab":"x"}'],
    ),
    ({"type": "object", "additionalProperties": False}, [{}], ['{"x":1}']),
    ({"type": "object", "required": ["x"]}, [{"x": [1]}], ["{}"]),
    (
        {"anyOf": [{"type": "integer"}, {"items": {"$ref": "#"}, "type": "array"}]},
        [1, [1, [2]]],
        ['"a"', '["a"]'],
    ),
    ({"anyOf": [False, {"type": "null"}], "description": "x"}, [None], ["1"]),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "null"}},
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
        },
        [{"a": None}, {"b": 1}, {"a": None, "b": 3}],
        ["{}"],
    ),
    ({"oneOf": SHAPES}, [{"kind": "circle", "r": 2}, {"kind": "cube"}], ['{"kind":"box","r":2}', "{}"]),
    ({"oneOf": [{"type": "string"}, {"type": "null"}, {"const": 4}]}, ["a", None, 4], ["5"]),
    ({"$ref": "#/$defs/node", "$defs": {"node": NODE}}, [{"next": {"next": None}}], ['{"next":1}', "{}"]),
    ({"$ref": "#/$defs/a%20b~1c", "$defs": {"a b/c": {"const": 1}}}, [1], ["2"]),
    ({"anyOf": [{"const": 1}, {"$ref": "#/anyOf/0"}]}, [1], ["2"]),
    ({"allOf": [{"type": "boolean"}], "description": "wrapped"}, [True], ["1"]),
    (
        {
            "allOf": [
                {"$ref": "#/$defs/animal"},
                {"properties": {"legs": {"type": "integer"}}, "required": ["legs"]},
            ],
            "properties": {"name": {"maxLength": 3}},
            "unevaluatedProperties": False,
            "$defs": {"animal": ANIMAL},
        },
        [{"name": "dog", "legs": 4}],
        ['{"name":"horse","legs":4}', '{"name":"dog"}'],
    ),
    (
        {
            "anyOf": [{"$ref": "#/$defs/point"}, {"type": "null"}],
            "$defs": {
                "point": {
                    "allOf": [{"properties": {"x": {"type": "integer"}}, "required": ["x"]}],
                    "anyOf": [{"required": ["x"]}, {"properties": {"y": {"type": "null"}}}],
                    "unevaluatedProperties": False,
                }
            },
        },
        [{"x": 1}, {"x": 1, "y": None}, None],
        ['{"y":null}', '{"x":1,"z":1}'],
    ),
    # A schema allows only properties that it or a schema within it lists, even beside other schemas.
    (
        {
            "allOf": [
                {"properties": {"a": {"type": "null"}}, "unevaluatedProperties": False},
                {"properties": {"a": True, "b": True}},
            ]
        },
        [{}, {"a": None}],
        ['{"b":1}', '{"a":null,"b":1}'],
    ),
    (
        {
            "properties": {"a": True},
            "$ref": "#/$defs/closed",
            "$defs": {"closed": {"unevaluatedProperties": False}},
        },
        [{}],
        ['{"a":1}'],
    ),
    (
        {"$ref": "#/$defs/n", "maximum": 5, "$defs": {"n": {"type": "integer", "minimum": 3}}},
        [3, 5],
        ["2", "6"],
    ),
    (
        {"allOf": [{"enum": [1, 2, 3]}, {"enum": [2, 3.0, "4"]}, {"type": "number", "exclusiveMaximum": 3}]},
        [2],
        ["1", "3", '"4"'],
    ),
    (
        {
            "allOf": [{"prefixItems": [{"minimum": 3}]}, {"items": {"type": "integer", "maximum": 4}}],
            "minItems": 2,
        },
        [[3, 1], [4, 4, -7]],
        ["[2,2]", "[3,5]", "[3]"],
    ),
    (
        {
            "type": "string",
            "$comment": "c",
            "title": "t",
            "examples": [1],
            "x-own": 3,
            "deprecated": True,
            "default": 1,
        },
        ["a"],
        ["1"],
    ),
    (
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "properties": {"a": True},
            "required": ["a"],
        },
        [{"a": 2}],
        ["{}"],
    ),
    ({"type": "array", "uniqueItems": False, "items": {"type": "null"}}, [[None, None]], ["[1]"]),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_grammar_takes_what_the_schema_allows(number: int) -> None:
    schema, good, bad = CASES[number]
    grammar = schema_to_grammar(schema)
    validator = jsonschema_rs.validator_for(_plain(schema), validate_formats=True)
    for value in good:
        validator.validate(value)
        for text in (
            json.dumps(value, ensure_ascii=False),
            json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        ):
            assert takes(grammar, text), text
    for text in bad:
        assert not takes(grammar, text), text


def _plain(schema: Any) -> Any:
    """``nullable`` comes from OpenAPI; validators do not know it."""
    return {"type": ["string", "null"]} if schema == {"type": "string", "nullable": True} else schema


def test_blanks_between_values_are_at_most_one() -> None:
    grammar = schema_to_grammar({"type": "array", "items": {"type": "object"}})
    assert takes(grammar, '[{"a": 1, "b": [2, 3]}, {}]')
    for text in ("[ {}]", "[{},  {}]", "[{},\n{}]", ' [{"a":1}]', '[{"a" :1}]', "[{} ]", "[{}] "):
        assert not takes(grammar, text), text


def test_deep_schemas_make_deep_values() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(100):
        schema = {"type": "array", "items": schema, "minItems": 1}
    assert takes(schema_to_grammar(schema), "[" * 100 + "1" + "]" * 100)


def test_chains_of_references_are_followed() -> None:
    chain: dict[str, Any] = {
        f"d{n}": {"type": "array", "items": {"$ref": f"#/$defs/d{n + 1}"}} for n in range(800)
    }
    grammar = schema_to_grammar({"$ref": "#/$defs/d0", "$defs": {**chain, "d800": {"type": "null"}}})
    assert takes(grammar, "[[[]]]")
