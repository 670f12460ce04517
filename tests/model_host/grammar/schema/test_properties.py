"""Random schemas: every sentence of the grammar satisfies its schema, and random valid values are sentences."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from model_host.grammar.schema.converter import schema_to_grammar
from tests.model_host.grammar.gbnf.sentences import Sentences, takes

NAMES = ["a", "b", "ab", "naïve", 'q"', "x y", "\\"]
TEXT = st.text(st.characters(codec="utf-8", min_codepoint=1), max_size=6)
# Pattern and texts that match it.
PATTERNS = {
    "^[a-c]{1,3}$": ["a", "abc"],
    "b": ["b", "xby", "b\n"],
    "^(?:x|yz)+\\d?$": ["x", "yzx", "yz7"],
    '^[^"a]$': ["b", "\\", "€"],
    "^\\w+@\\w+\\.[a-z]{2,}$": ["a_1@b.org"],
    "^a|z$": ["abc", "z", "yz"],
}
FORMATS = {
    "date": ["2024-02-29", "1999-12-31"],
    "date-time": ["2026-11-21T23:59:59Z", "2026-11-21T00:00:00.25-07:30"],
    "uuid": ["123e4567-e89b-12d3-a456-426614174000"],
    "ipv6": ["1:2:3:4:5:6:7:8"],
    "duration": ["P1DT2H"],
    "uri": ["https://a.org/b?c#d"],
    "hostname": ["a-b.example"],
    "email": ["a@b.org"],
}
SCALARS = st.none() | st.booleans() | st.integers(-99, 99) | TEXT

Pair = tuple[Any, Any]


def _strings() -> st.SearchStrategy[Pair]:
    def limited(low: int, more: int, text: str) -> Pair:
        text = (text + "abcdef")[: max(low, min(len(text), low + more))]
        return {"type": "string", "minLength": low, "maxLength": low + more}, text

    shaped = [
        ({"type": "string", key: shape}, text)
        for key, shapes in (("pattern", PATTERNS), ("format", FORMATS))
        for shape, texts in shapes.items()
        for text in texts
    ]
    return (
        st.builds(lambda text: ({"type": "string"}, text), TEXT)
        | st.builds(limited, st.integers(0, 3), st.integers(0, 3), TEXT)
        | st.sampled_from(shaped)
    )


@st.composite
def _numbers(draw: st.DrawFn) -> Pair:
    kind = draw(st.sampled_from(["integer", "number"]))
    step = 1 if kind == "integer" else draw(st.sampled_from([1, 4]))
    number = draw(st.integers(-2000, 2000))
    schema: dict[str, Any] = {"type": kind}
    if draw(st.booleans()):
        schema |= draw(
            st.sampled_from([{"minimum": number / step}, {"exclusiveMinimum": (number - 1) / step}])
        )
    if draw(st.booleans()):
        schema |= draw(
            st.sampled_from([{"maximum": number / step}, {"exclusiveMaximum": (number + 1) / step}])
        )
    return schema, number if step == 1 else number / step


@st.composite
def _constants(draw: st.DrawFn) -> Pair:
    values = draw(st.lists(SCALARS | st.lists(SCALARS, max_size=2), min_size=1, max_size=3))
    chosen = draw(st.sampled_from(values))
    return draw(st.sampled_from([{"enum": values}, {"const": chosen}])), chosen


def _arrays(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    @st.composite
    def build(draw: st.DrawFn) -> Pair:
        prefix = draw(st.lists(inner, max_size=2))
        item_schema, item = draw(inner)
        taken = draw(st.integers(0, len(prefix)))
        items = [value for _, value in prefix[:taken]]
        if taken == len(prefix):
            items += [item] * draw(st.integers(0, 2))
        schema: dict[str, Any] = {"type": "array", "items": item_schema}
        if prefix:
            schema["prefixItems"] = [one for one, _ in prefix]
        if draw(st.booleans()):
            schema["minItems"] = draw(st.integers(0, len(items)))
        if draw(st.booleans()):
            schema["maxItems"] = draw(st.integers(len(items), len(items) + 2))
        return schema, items

    return build()


def _objects(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    @st.composite
    def build(draw: st.DrawFn) -> Pair:
        listed = draw(st.dictionaries(st.sampled_from(NAMES), inner, max_size=4))
        required = [name for name in listed if draw(st.booleans())]
        present = [name for name in listed if name in required or draw(st.booleans())]
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: one for name, (one, _) in listed.items()},
        }
        value = {name: listed[name][1] for name in present}
        if required:
            schema["required"] = required
        kind = draw(st.sampled_from(["", "closed", "open"]))
        if kind == "closed":
            schema["additionalProperties"] = False
        elif kind == "open":
            schema["additionalProperties"], other = draw(inner)
            value |= {name: other for name in ("aa", "zz") if draw(st.booleans())}
        return schema, value

    return build()


def _combined(inner: st.SearchStrategy[Pair]) -> st.SearchStrategy[Pair]:
    @st.composite
    def build(draw: st.DrawFn) -> Pair:
        kind = draw(st.sampled_from(["anyOf", "allOf", "oneOf", "$ref", "described"]))
        schema, value = draw(inner)
        if kind == "anyOf":
            others = draw(st.lists(inner, max_size=2))
            return {"anyOf": [*(one for one, _ in others), schema]}, value
        if kind == "allOf":
            return {"allOf": [schema, {"title": "t"}]}, value
        if kind == "oneOf":
            wrapped = {
                "type": "object",
                "properties": {"kind": {"const": "one"}, "v": schema},
                "required": ["kind", "v"],
            }
            other = {"type": "object", "properties": {"kind": {"const": "two"}}, "required": ["kind"]}
            return {"oneOf": [wrapped, other, {"type": "null"}]}, {"kind": "one", "v": value}
        if kind == "$ref":
            return {
                "type": "array",
                "prefixItems": [schema, {"$ref": "#/$defs/word"}],
                "minItems": 2,
                "maxItems": 2,
            }, [
                value,
                "yes",
            ]
        return {**(schema if isinstance(schema, dict) else {}), "description": "d", "examples": [1]}, value

    return build()


PAIRS: st.SearchStrategy[Pair] = st.recursive(
    _strings()
    | _numbers()
    | _constants()
    | st.sampled_from([({"type": ["null", "boolean"]}, None), (True, [1])]),
    lambda inner: _arrays(inner) | _objects(inner) | _combined(inner),
    max_leaves=6,
)


def whole(pair: Pair) -> Pair:
    """Add the definitions that references point to."""
    schema, value = pair
    root = schema if isinstance(schema, dict) else {"allOf": [schema]}
    return {**root, "$defs": {"word": {"enum": ["yes", "no"]}}}, value


def sentences_satisfy(schema: Any, seed: int, count: int = 4) -> None:
    validator = jsonschema_rs.validator_for(schema, validate_formats=True)
    sentences = Sentences(schema_to_grammar(schema).rules, random.Random(seed))
    for _ in range(count):
        text = sentences.one()
        value = json.loads(text)
        assert validator.is_valid(value), (text, schema)


def values_are_taken(schema: Any, value: Any) -> None:
    assert jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value), (
        "the test itself is wrong"
    )
    grammar = schema_to_grammar(schema)
    for separators in ((", ", ": "), (",", ":")):
        if _constants_inside(schema) and separators == (",", ":"):
            continue  # listed values have only one spacing
        assert takes(grammar, json.dumps(value, ensure_ascii=False, separators=separators)), (value, schema)


def _constants_inside(schema: Any) -> bool:
    return '"enum"' in (text := json.dumps(schema)) or '"const"' in text


@settings(max_examples=150)
@given(PAIRS.map(whole), st.integers(0, 2**32))
def test_sentences_satisfy_the_schema_and_values_are_sentences(pair: Pair, seed: int) -> None:
    schema, value = pair
    sentences_satisfy(schema, seed)
    values_are_taken(schema, value)


@settings(max_examples=40)
@given(
    st.integers(-(10**6), 10**6),
    st.integers(0, 10**6),
    st.sampled_from([1, 10, 1000]),
    st.booleans(),
    st.booleans(),
    st.integers(-(10**6), 3 * 10**6),
)
def test_bounds_are_exact(
    low: int, width: int, scale: int, low_open: bool, high_open: bool, near: int
) -> None:
    """``scale`` shifts the decimal point: bounds and probes have up to three decimals."""
    bounds = low / scale, (low + width) / scale
    keys = "exclusiveMinimum" if low_open else "minimum", "exclusiveMaximum" if high_open else "maximum"
    schema = {"type": "number", **dict(zip(keys, bounds, strict=True))}
    validator = jsonschema_rs.validator_for(schema)
    probes = {low, low + width, low + width // 2, 0, near} | {
        low - 1,
        low + 1,
        low + width - 1,
        low + width + 1,
    }
    if width == 0 and (low_open or high_open):
        return
    if width == 1 and low_open and high_open:
        probes = {low}
    grammar = schema_to_grammar(schema)
    for probe in probes:
        number = probe / scale
        text = f"{number:f}".rstrip("0").rstrip(".") if number else "0"
        assert takes(grammar, text) is validator.is_valid(number), (schema, text)
