"""Thirty schemas with the demo model: every reply is JSON that satisfies its schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from tests.model_host.driver import ROOT, HostProcess

WORD = {"type": "string", "pattern": "^[a-z]{1,12}$"}
LINE = {"type": "string", "minLength": 1, "maxLength": 60}


def record(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


SCHEMAS: list[dict[str, Any]] = [
    {"type": "boolean"},
    {"type": "null"},
    {"type": "integer"},
    {"type": "integer", "minimum": 1, "maximum": 10},
    {"type": "number", "minimum": 0, "maximum": 1},
    {"type": "number", "exclusiveMinimum": -2.5, "exclusiveMaximum": 2.5},
    LINE,
    WORD,
    {"type": "string", "pattern": "^[^0-9]{0,20}[0-9]$"},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "time"},
    {"type": "string", "format": "uuid"},
    {"type": "string", "format": "email"},
    {"type": "string", "format": "ipv4"},
    {"type": "string", "format": "duration"},
    {"enum": ["red", "green", 3, None, {"a": [1]}]},
    {"const": {"quoted": 'say "hi"'}},
    {"type": ["integer", "null"]},
    {"type": "array", "items": WORD, "minItems": 1, "maxItems": 3},
    {"type": "array", "prefixItems": [LINE, {"type": "integer"}], "items": False, "minItems": 2},
    record(name=LINE, age={"type": "integer", "minimum": 0, "maximum": 120}),
    record(
        terms={"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 64}, "maxItems": 3}
    ),
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": WORD}, "required": ["b"]},
    {"type": "object", "additionalProperties": {"type": "boolean"}},
    {"anyOf": [record(error=LINE), record(result={"type": "number"})]},
    {"oneOf": [record(kind={"const": "circle"}, r={"type": "integer"}), record(kind={"const": "point"})]},
    {"allOf": [{"$ref": "#/$defs/named"}, {"properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}]}
    | {"$defs": {"named": {"type": "object", "properties": {"name": WORD}, "required": ["name"]}}},
    {"type": "object", "properties": {"value": WORD, "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}}
    | {"required": ["value", "next"]},
    record(
        deep=record(
            deeper=record(list={"type": "array", "items": record(x={"type": "boolean"}), "maxItems": 2})
        )
    ),
]


@pytest.fixture(scope="module")
def demo(demo_model: str) -> Iterator[HostProcess]:
    process = HostProcess(ROOT / "models" / "demo" / f"{demo_model}.gguf", "--parallel", "8")
    yield process
    assert process.stop() == 0


def test_thirty_schemas_hold(demo: HostProcess) -> None:
    assert len(SCHEMAS) == 30
    for seed, temperature in ((1, 0.0), (2, 1.0), (3, 2.0)):
        sampling = {"temperature": temperature, "seed": seed}
        for number, schema in enumerate(SCHEMAS):
            fields = {"max_tokens": 400, "json_schema": schema, "sampling": sampling}
            demo.generate(f"{number}.{seed}", "Answer with an example.", **fields)
        ended = 0
        for number, schema in enumerate(SCHEMAS):
            text, end = demo.text(f"{number}.{seed}", 110), demo.end(f"{number}.{seed}")
            if end["reason"] == "stop":
                ended += 1
                validator = jsonschema_rs.validator_for(schema, validate_formats=True)
                assert validator.is_valid(json.loads(text)), (schema, text)
        # Objects of any properties, and nested ones, may exceed the limit.
        assert ended >= len(SCHEMAS) - 2
