"""The shortest ending of a text that follows a grammar."""

from __future__ import annotations

import json
import math

import pytest

from model_host.grammar.gbnf.matcher import Matcher
from model_host.grammar.gbnf.program import compile_grammar
from model_host.grammar.schema.converter import schema_to_grammar

TEXT = json.dumps({"a": [{"é": 'say \\ " €'}, [], -1.5e3, True], "b": {"c": None}}, ensure_ascii=False)


def test_every_beginning_of_a_json_text_gets_its_shortest_ending() -> None:
    matcher = Matcher(schema_to_grammar({"type": "object"}))
    matcher.plan_endings()
    raw = TEXT.encode()
    for at in range(len(raw)):
        ending = matcher.ending()
        json.loads(raw[:at] + ending)
        length = matcher.ending_length(0, raw[at : at + 1])
        assert len(ending) <= 1 + length <= 2 + len(ending) + 4
        assert len(matcher.ending(0, raw[at : at + 1])) == length
        matcher.accept(0, raw[at : at + 1])
    assert matcher.ending() == b""


@pytest.mark.parametrize(
    ("grammar", "text", "ending"),
    [
        ('root ::= "ab" | "abcd" | "x"', "", "x"),
        ('root ::= "ab" | "abcd" | "x"', "a", "b"),
        ('root ::= "(" root ")" | "1"', "((", "1))"),
        ('root ::= (("a"*)* "b")* "end"', "aa", "bend"),
        ("root ::= [Ā-ῼ]{2} [à-ü]?", "", "ĀĀ"),
        ('root ::= item{3,5}\nitem ::= "a" [0-9]* ","', "a1", ",a,a,"),
    ],
)
def test_endings(grammar: str, text: str, ending: str) -> None:
    matcher = Matcher(compile_grammar(grammar, int))
    matcher.plan_endings()
    for byte in text.encode():
        matcher.accept(0, bytes([byte]))
    assert matcher.ending().decode() == ending


def test_no_text_leads_through_a_token() -> None:
    matcher = Matcher(compile_grammar('root ::= "a" <[7]>', int))
    matcher.plan_endings()
    assert matcher.ending_length(0, b"a") == math.inf
