"""Schemas and grammars for benchmarks/grammars.py: ordinary ones, and hostile ones by name."""

from __future__ import annotations

import json
from typing import Any

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {
            "type": "array",
            "items": {"type": "string", "minLength": 2, "maxLength": 64},
            "maxItems": 3,
        },
        "kind": {"enum": ["circle", "box", "cube"]},
        "deep": {
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": {"type": "boolean"}},
            "required": ["x", "y"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "age", "tags", "kind", "deep"],
    "additionalProperties": False,
}
SCHEMA_TEXT = json.dumps(
    {
        "name": "Ada Lovelace, countess of nothing in particular",
        "age": 36,
        "tags": ["mathematics", "engines and looms", "poetry"],
        "kind": "cube",
        "deep": {"x": 1.25, "y": True},
    }
)
_JSON = r"""
root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x7F\x01-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
"""
_TOOL = (
    r'root ::= "{\"name\": \"" ("weather\", \"arguments\": {\"city\": " string ", \"days\": " [1-7] |'
    r' "search\", \"arguments\": {\"query\": " string) "}}"'
    "\n"
    r'string ::= "\"" [^"\\\x01-\x1F]{1,200} "\""'
    "\n"
)
_EXPRESSIONS = r"""
root  ::= (expr "=" ws term "\n")+
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]{1,20} ws
ws    ::= [ \t\n]*
"""
# Name → GBNF, and a text that it takes.
GRAMMARS = {
    "GBNF: JSON": (_JSON, SCHEMA_TEXT),
    "GBNF: tool calls": (_TOOL, '{"name": "weather", "arguments": {"city": "Reykjavik", "days": 3}}'),
    "GBNF: expressions": (_EXPRESSIONS, "(a +b12) *300 -foo_bar =x\n"),
}


def _chain(length: int, rule: str, last: str) -> str:
    rules = (f"r{number} ::= {rule.format(f'r{number + 1}')}\n" for number in range(length))
    return f"root ::= r0\n{''.join(rules)}r{length} ::= {last}\n"


HOSTILE_GRAMMARS = {
    "two ways at each letter": 'root ::= "a" root "b" | "a" root "c" | ',
    "empty tails": 'root ::= x root y | \nx ::= "a" | "a" x\ny ::= "b"?',
    "2^60 ways": _chain(60, '"a" {0} "x" | "a" {0} "y"', '"a"'),
    "2^40 beginnings": _chain(40, "{0} | {0}?", '"a"'),
    "empty repetitions": 'root ::= (("a"? "b"?){0,150}){0,150}',
    "left recursion": 'root ::= root root | "a" | root root root | ""',
    "chain of 2,000 rules": _chain(2_000, '{0} "b" | "a"', '"x"'),
    "chain of 15,000 rules": _chain(15_000, "{0}", '"x"'),
    "6,000 words": "root ::= " + " | ".join(f'"{number:05}"' for number in range(6000)),
}


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"allOf": [schema]}
    return schema


HOSTILE_SCHEMAS: dict[str, Any] = {
    "pattern ((a{2000}){2000}){2000}": {"type": "string", "pattern": "^((a{2000}){2000}){2000}$"},
    "pattern (a?){2000}a{2000}": {"type": "string", "pattern": "^(a?){2000}a{2000}$"},
    "pattern a.{200}$": {"type": "string", "pattern": "a.{200}$"},
    "maxLength 10^9": {"type": "string", "maxLength": 10**9},
    "minItems 10^6": {"type": "array", "items": {"type": "integer"}, "minItems": 10**6},
    "multipleOf 999983": {"type": "integer", "multipleOf": 999_983},
    "multipleOf 9999991": {"type": "integer", "multipleOf": 9_999_991},
    "product of choices": {
        "allOf": [{"anyOf": [{"minimum": i * 10 + j} for j in range(10)]} for i in range(10)]
    },
    "$ref to itself": {"$ref": "#"},
    "endless": {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]},
    "400 allOf": _deep(400),
    "7,000 constants": {"enum": [f"{number:05}" for number in range(7000)]},
    "2,000 properties": {"properties": {f"p{number}": {"type": "integer"} for number in range(2000)}},
    "1,400 arrays by $ref": {
        "$ref": "#/$defs/0",
        "$defs": {str(number): {"items": {"$ref": f"#/$defs/{number + 1}"}} for number in range(1400)}
        | {"1400": {"type": "null"}},
    },
    "a name of 60,000 letters": {"properties": {"a" * 60_000: {}}, "additionalProperties": True},
}
