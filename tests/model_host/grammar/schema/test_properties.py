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
from tests.model_host.grammar.schema.random_schemas import PAIRS, Pair, whole


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
