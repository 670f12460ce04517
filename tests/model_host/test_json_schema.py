"""JSON schema to GBNF, judged by llama.cpp's own grammar: what it accepts must be valid, and examples must pass."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import llama_cpp
import numpy as np
import pytest

from model_host.grammar import GrammarError, check_grammar
from model_host.json_schema import schema_to_grammar
from model_host.vocabulary import Vocabulary

NODE = {
    "type": "object",
    "properties": {"next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
    "required": ["next"],
}
# Schema, values whose compact texts the grammar must take, texts it must not take.
CASES: list[tuple[Any, list[Any], list[str]]] = [
    (True, [1, "a", None, [1, {"a": [True]}], {}], ["", "nul", "[1,]", "{'a': 1}"]),
    ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab", "äöü"], ['"a"', '"abcd"', '"a"b"']),
    ({"type": "string", "pattern": "^T-[0-9]{8}(\\.c[0-9]+)?$"}, ["T-20261120", "T-20261120.c2"], ['"T-1"']),
    ({"type": "string", "format": "date"}, ["2026-11-21"], ['"2026-13-01"', '"2026-11-32"']),
    ({"type": "string", "format": "uuid"}, ["123e4567-e89b-12d3-a456-426614174000"], ['"123"']),
    ({"type": "string", "format": "made-up"}, ["anything"], ["1"]),
    ({"type": "integer"}, [0, -5, 12345], ["01", "1.5", "-", "1e3"]),
    ({"type": "integer", "minimum": -3, "maximum": 120}, [-3, 0, 99, 120], ["-4", "121", "1000"]),
    ({"type": "integer", "exclusiveMinimum": 9, "exclusiveMaximum": 30}, [10, 29], ["9", "30"]),
    ({"type": "number"}, [0, -1.5, 1e5], ["1.", ".5", "+1"]),
    ({"type": ["boolean", "null"]}, [True, None], ["1", '"true"']),
    ({"enum": ["red", 3, None, {"a": [1]}]}, ["red", 3, None], ['"blue"', "4"]),
    ({"const": 'say "hi" \\ é'}, ['say "hi" \\ é'], ['"say hi"']),
    (
        {"type": "array", "items": {"type": "integer"}, "minItems": 1, "maxItems": 3},
        [[1], [1, 2, 3]],
        ["[]", "[1,2,3,4]", '["a"]'],
    ),
    ({"type": "array", "maxItems": 0}, [[]], ["[1]"]),
    ({"prefixItems": [{"type": "string"}, {"type": "integer"}]}, [["a", 1]], ["[1]", '["a"]']),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
            "required": ["b"],
        },
        [{"a": 1, "b": "x"}, {"b": "x"}],
        ["{}", '{"a":1}', '{"b":"x","a":1}', '{"b":"x","c":1}'],
    ),
    (
        {"type": "object", "properties": {"a": True, "b": True}},
        [{}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}],
        ['{,"b":1}'],
    ),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, [{}, {"x": 1, "y": 2}], ['{"x":"1"}']),
    ({"type": "object", "additionalProperties": False}, [{}], ['{"x":1}']),
    (
        {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#"}}]},
        [1, [1, [2]]],
        ['"a"', '["a"]'],
    ),
    (
        {"$ref": "#/$defs/node", "$defs": {"node": NODE}},
        [{"next": {"next": None}}],
        ['{"next":1}', "{}"],
    ),
    ({"allOf": [{"type": "boolean"}], "description": "wrapped"}, [True], ["1"]),
]
REFUSED: list[tuple[Any, str]] = [
    (False, "a JSON schema is an object or true"),
    ({"type": "nonsense"}, "`type` is"),
    ({"type": "number", "multipleOf": 3}, "`multipleOf` is not supported for the type number"),
    ({"type": "number", "minimum": 3}, "`minimum` is not supported for the type number"),
    ({"type": "array", "uniqueItems": True}, "`uniqueItems`"),
    ({"type": "string", "pattern": "a+"}, "must begin with"),
    ({"type": "string", "pattern": "^(?=x)y$"}, "not supported at"),
    ({"type": "string", "pattern": "^(a$"}, "unbalanced"),
    ({"type": "string", "pattern": "^a)(b$"}, "unbalanced"),
    ({"type": "string", "pattern": "^a$", "maxLength": 3}, "cannot be combined"),
    ({"type": "string", "maxLength": 10**9}, "over the limit"),
    ({"type": "string", "minLength": -1}, "whole number, 0 or more"),
    ({"type": "array", "minItems": 3, "maxItems": 1}, "over `maxItems`"),
    ({"type": "integer", "minimum": 5, "maximum": 4}, "no integer is allowed"),
    ({"type": "integer", "minimum": 0.5}, "must be a whole number"),
    ({"type": "object", "required": ["x"], "additionalProperties": False}, "no property allows"),
    ({"$ref": "http://example.com/schema"}, "only point into the same schema"),
    ({"$ref": "#/missing"}, "points to nothing"),
    ({"enum": []}, "leaves no value"),
    ({"enum": ["a"], "type": "integer"}, "leaves no value"),
    ({"anyOf": []}, "need a list"),
    ({"not": {}}, "`not` is not supported"),
    ({"description": "x" * 70_000}, "over the limit of 65536"),
]


class Acceptor:
    """llama.cpp's grammar over characters: a text is taken when each of its tokens and the end are allowed."""

    def __init__(self, model: Path) -> None:
        parameters = llama_cpp.llama_model_default_params()
        parameters.vocab_only = True
        self._model = llama_cpp.llama_model_load_from_file(str(model).encode(), parameters)
        assert self._model
        self.vocabulary = Vocabulary(self._model, None)

    def takes(self, grammar: str, text: str) -> bool:
        sampler = llama_cpp.llama_sampler_init_grammar(self.vocabulary.handle, grammar.encode(), b"root")
        assert sampler, grammar
        try:
            tokens = self.vocabulary.tokenize(text, special=False)
            for token in [*tokens, self.vocabulary.ending_ids[0]]:
                if not self._allowed(sampler, token):
                    return False
                if token != self.vocabulary.ending_ids[0]:
                    llama_cpp.llama_sampler_accept(sampler, token)
            return True
        finally:
            llama_cpp.llama_sampler_free(sampler)

    def _allowed(self, sampler: Any, token: int) -> bool:
        single = np.array(
            [(token, 1.0, 0.0)], np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        )
        pointer = single.ctypes.data_as(llama_cpp.ctypes.POINTER(llama_cpp.llama_token_data))
        array = llama_cpp.llama_token_data_array(data=pointer, size=1, selected=-1, sorted=False)
        llama_cpp.llama_sampler_apply(sampler, llama_cpp.ctypes.byref(array))
        return bool(np.isfinite(single["logit"][0]))

    def close(self) -> None:
        llama_cpp.llama_model_free(self._model)


@pytest.fixture(scope="module")
def acceptor(tiny_model: Path) -> Iterator[Acceptor]:
    made = Acceptor(tiny_model)
    yield made
    made.close()


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_grammar_takes_what_the_schema_allows(acceptor: Acceptor, number: int) -> None:
    schema, good, bad = CASES[number]
    grammar = schema_to_grammar(schema)
    check_grammar(grammar)
    for value in good:
        jsonschema_rs.validate(schema, value)
        for text in (
            json.dumps(value, ensure_ascii=False),
            json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        ):
            assert acceptor.takes(grammar, text), text
    for text in bad:
        assert not acceptor.takes(grammar, text), text


@pytest.mark.parametrize(("schema", "says"), REFUSED)
def test_what_cannot_be_honoured_is_refused_by_name(schema: Any, says: str) -> None:
    with pytest.raises(GrammarError) as raised:
        schema_to_grammar(schema)
    assert says in str(raised.value)


def test_deep_schemas_are_refused() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(100):
        schema = {"type": "array", "items": schema}
    with pytest.raises(GrammarError, match="nested deeper"):
        schema_to_grammar(schema)


def test_integer_ranges_are_exact(acceptor: Acceptor) -> None:
    chance = random.Random(5)
    for _ in range(25):
        low, high = sorted(chance.randint(-1200, 1200) for _ in range(2))
        grammar = schema_to_grammar({"type": "integer", "minimum": low, "maximum": high})
        around = {
            low - 1,
            low,
            low + 1,
            high - 1,
            high,
            high + 1,
            0,
            -1,
            *(chance.randint(-1300, 1300) for _ in range(20)),
        }
        for number in around:
            assert acceptor.takes(grammar, str(number)) == (low <= number <= high), (low, high, number)
