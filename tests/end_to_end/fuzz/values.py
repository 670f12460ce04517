"""Bodies and values for `tests/end_to_end/fuzz/http.py`: valid ones made from schemas, and mutations of them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

Json = Any

HI = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 4}}, "required": ["a"]}
FUNCTION = {"name": "add", "description": "Adds.", "parameters": SCHEMA}
TOOL = {"type": "function", "function": FUNCTION}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": "x"}'}}
TOOL_TURN = [
    *HI,
    {"role": "assistant", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "1"},
]
NAMED = {"name": "x", "schema": SCHEMA}
MESSAGES = {"model": "default", "messages": HI}
# Valid bodies that schemas alone rarely produce, so that their mutations get far.
GOOD: dict[str, list[Json]] = {
    "/v1/chat/completions": [
        {"messages": HI, "stream": True, "stream_options": {"include_usage": True}},
        {"messages": HI, "tools": [TOOL], "tool_choice": "required"},
        {"messages": TOOL_TURN},
        {"messages": HI, "response_format": {"type": "json_schema", "json_schema": NAMED}},
        {"messages": HI, "grammar": 'root ::= "yes" | "no"', "logprobs": True, "top_logprobs": 2, "n": 2},
    ],
    "/v1/completions": [
        {"prompt": "once", "logprobs": 2, "stream": True},
        {"prompt": ["a", "b"], "echo": False},
    ],
    "/v1/responses": [
        {"input": "hi", "tools": [{"type": "function", **FUNCTION}], "stream": True},
        {"input": "hi", "text": {"format": {"type": "json_schema", **NAMED}}},
    ],
    "/v1/messages": [
        {**MESSAGES, "tools": [{"name": "add", "input_schema": SCHEMA}], "tool_choice": {"type": "any"}},
        {**MESSAGES, "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
    ],
    "/api/chat": [{**MESSAGES, "format": SCHEMA}, {**MESSAGES, "tools": [TOOL]}],
    "/api/generate": [{"model": "default", "prompt": "hi", "format": "json", "stream": False}],
    "/ask": [{"question": "Who created Befunge?", "style": "irc"}],
}
# Fields that keep a generation short, by the end of the path.
SHORT: dict[str, Json] = {
    "/completions": {"max_tokens": 4},
    "/v1/messages": {"max_tokens": 4},
    "/responses": {"max_output_tokens": 4},
    "/api/chat": {"options": {"num_predict": 4}},
    "/generate": {"options": {"num_predict": 4}},
}
STRINGS = (
    "",
    " ",
    "a",
    "hi",
    "default",
    "user",
    "\0",
    "\x1b[2J",
    "\u202egnp",
    "\ud800",
    "👩\u200d🔬",
    "é" * 3000,
    "x" * 70_000,
    "<end_of_turn>",
    "../../etc/passwd",
    "'; DROP TABLE requests; --",
    "%00%ff",
    "NaN",
    "-1",
    "1e999",
    "true",
    "2026-11-22",
    "2026-02-30",
    "[" * 2000,
    '{"a":' * 300,
    "(" * 500,
    "^(a+)+$",
    "[^\\x00-\\x{10ffff}]{1000}",
    "root ::= root",
    'root ::= ("a"*)*',
    "\r\nX: y",
)
NUMBERS = (
    0,
    -1,
    1,
    7,
    0.1,
    -0.0,
    1e308,
    -1e308,
    5e-324,
    2**31,
    2**53 + 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**400,
    float("nan"),
    float("inf"),
    float("-inf"),
)
SCHEMAS: tuple[Json, ...] = (
    {"$ref": "#"},
    {"anyOf": []},
    {"enum": []},
    {"type": "nothing"},
    {"pattern": "(a|b)*" * 50},
    {"not": {}},
    True,
    False,
    {"type": "string", "minLength": 10**9},
    {"type": "array", "items": {"$ref": "#"}, "minItems": 10**6},
    {"type": "integer", "minimum": 10**30, "maximum": -(10**30)},
    {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
    {
        "properties": {str(n): {"type": "string"} for n in range(300)},
        "required": [str(n) for n in range(300)],
    },
)


def value_of(schema: Json, components: dict[str, Json], chance: random.Random, room: int = 6) -> Json:
    """Make a value that satisfies the schema's types, limits and required fields."""
    if not isinstance(schema, dict) or room < 0:
        return None
    if "$ref" in schema:
        return value_of(components[schema["$ref"].rpartition("/")[2]], components, chance, room - 1)
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return value_of(chance.choice(schema[several]), components, chance, room)
    if "const" in schema or "enum" in schema:
        return chance.choice([schema["const"]] if "const" in schema else schema["enum"])
    kind = schema.get("type", "object")
    kind = chance.choice(kind) if isinstance(kind, list) else kind
    match kind:
        case "string":
            filled = "x" * schema.get("minLength", 1)
            return chance.choice(["hi", "default", "a b", "T-20261122-01", "2026-11-22", filled])
        case "integer" | "number":
            low = schema.get("minimum", 0)
            return chance.choice([low, low + 1, min(low + 20, schema.get("maximum", 10**6))])
        case "boolean":
            return chance.random() < 0.5
        case "array":
            count = chance.randint(schema.get("minItems", 0), schema.get("minItems", 0) + 2)
            return [value_of(schema.get("items", {}), components, chance, room - 1) for _ in range(count)]
        case "object":
            required = schema.get("required", [])
            return {
                name: value_of(field, components, chance, room - 1)
                for name, field in schema.get("properties", {}).items()
                if name in required or chance.random() < 0.2
            }
    return None


def nested(chance: random.Random) -> Json:
    """Make a deep value; 100 levels are the limit of a body."""
    made: Json = chance.choice([{}, [], {"type": "string"}, 1])
    for _ in range(chance.choice([3, 30, 90, 99, 100, 101, 300])):
        outer = [[made], {"a": made}, {"items": made}, {"properties": {"a": made}}, {"anyOf": [made]}]
        made = chance.choice(outer)
    return made


def hostile(chance: random.Random) -> Json:
    kinds: list[Callable[[], Json]] = [
        lambda: chance.choice([None, True, False, [], {}, [[]], [None], {"": ""}, [[]] * 3000]),
        lambda: chance.choice(STRINGS),
        lambda: chance.choice(NUMBERS),
        lambda: chance.choice(SCHEMAS),
        lambda: nested(chance),
    ]
    return copy.deepcopy(chance.choice(kinds)())  # callers change it


def mutated(body: Json, chance: random.Random) -> Json:
    """Copy ``body`` with one or a few changes."""
    body = copy.deepcopy(body)
    for _ in range(chance.choice([1, 1, 1, 2, 5])):
        places = _places(body)
        if not places or chance.random() < 0.05:
            body = hostile(chance)
            continue
        parent, key = chance.choice(places)
        match chance.randrange(6):
            case 0 if isinstance(parent, dict):
                del parent[key]
            case 1 if isinstance(parent, dict):
                name = chance.choice(["", "unknown", "\ud800", "\0", key.upper(), "model", "stream"])
                parent[name] = hostile(chance)
            case 2 if isinstance(parent, list):
                parent += [parent[key]] * (200 if len(written(parent[key])) < 1000 else 1)
            case 3:
                parent[key] = [parent[key]]
            case _:
                parent[key] = hostile(chance)
    return body


def _places(body: Json) -> list[tuple[Any, Any]]:
    """List each container with each of its keys."""
    found, pending = [], [body]
    while pending:
        at = pending.pop()
        keys = list(at) if isinstance(at, dict) else list(range(len(at))) if isinstance(at, list) else []
        found += [(at, key) for key in keys]
        pending += [at[key] for key in keys][:500]
    return found


def damaged(text: bytes, chance: random.Random) -> bytes:
    """Damage JSON text, or encode it in another way."""
    at = chance.randrange(len(text) + 1)
    inserted = chance.choice([b"\xff", b"\xed\xa0\x80", b"\0", b"\\ud800", b'"', b"]", b"}"])
    kinds: list[Callable[[], bytes]] = [
        lambda: text[:at],
        lambda: text[:at] + bytes([chance.randrange(256)]) + text[at + 1 :],
        lambda: text[:at] + inserted + text[at:],
        lambda: b"\xef\xbb\xbf" + text,
        lambda: text.decode("utf-8", "replace").encode("utf-16"),
        lambda: text + text,
        lambda: b"[" * chance.choice([101, 100_000]),
        lambda: b'{"a":' * 50_000,
        lambda: text[:-1] + b', "model": "a", "model": "b"}',
        lambda: b"",
        lambda: b" " * 100_000 + text,
        lambda: text.replace(b":", b"=", 1).replace(b'"', b"'"),
        lambda: bytes(chance.randrange(256) for _ in range(200)),
    ]
    return chance.choice(kinds)()


def written(body: Json) -> bytes:
    """Encode as Python does, including NaN and lone surrogates."""
    return json.dumps(body).encode()
