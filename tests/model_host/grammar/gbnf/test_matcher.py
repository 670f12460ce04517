"""The matcher: the texts it accepts, their shortest endings, and its limits on work."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.grammar.gbnf import matcher
from model_host.grammar.gbnf.matcher import Matcher
from model_host.grammar.gbnf.program import compile_grammar
from model_host.grammar.gbnf.syntax import GrammarError
from model_host.grammar.schema.converter import schema_to_grammar
from tests.model_host.grammar.gbnf.sentences import accepts, takes

LIST = 'root ::= "[" (root ("," root)*)? "]" | [0-9]+'


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('root ::= "a" root "b" | ', ["", "ab", "aaabbb"], ["a", "aab", "abb", "b"]),
        ("root ::= [^a-c]+ .", ["xäöü€😀", "xa"], ["x", "axx", "\0x"]),
        ("root ::= [ä-ü€]+", ["äöü€"], ["ä ", "ÿ", ""]),
        ('root ::= ("a"*)* "z"', ["z", "aaz"], ["a", "az "]),
        (
            'root ::= a{2,3} b{,1} c{1,}\na ::= "a"\nb ::= "b"\nc ::= "c"',
            ["aac", "aaabcc"],
            ["ac", "aaaac", "aab"],
        ),
        (LIST, ["[]", "[[1,2],[],34]", "7"], ["[1,]", "[", "[1 2]", ""]),
        ('root ::= "\\x41\\u00e4\\U0001F600\\t\\"\\\\"', ['Aä😀\t"\\'], ["Aä"]),
        ("root ::= [a\\-z\\]-]", ["a", "-", "z", "]"], ["b"]),
        ('root ::= x\nx ::= y\ny ::= "1" | "1" x', ["1", "111"], ["", "12"]),
        ("root ::=", [""], ["a"]),
    ],
)
def test_sentences(grammar: str, good: list[str], bad: list[str]) -> None:
    for text in good:
        assert takes(grammar, text), text
    for text in bad:
        assert not takes(grammar, text), text


@given(
    st.lists(st.tuples(st.integers(1, 0x10FFFF), st.integers(0, 0x900)), min_size=1, max_size=4),
    st.booleans(),
    st.data(),
)
def test_sets_are_what_they_say(ranges: list[tuple[int, int]], negated: bool, data: st.DataObject) -> None:
    spans = [(first, min(first + more, 0x10FFFF)) for first, more in ranges]
    inside = "".join(rf"\U{first:08X}-\U{last:08X}" for first, last in spans)
    near = [code + shift for span in spans for code in span for shift in (-1, 0, 1)]
    code = data.draw(st.sampled_from(near) | st.integers(1, 0x10FFFF))
    if not 1 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        return
    try:
        taken = takes(f"root ::= [{'^' if negated else ''}{inside}]", chr(code))
    except GrammarError as error:
        assert "without any character" in str(error)
        return
    assert taken is (any(first <= code <= last for first, last in spans) is not negated)


def test_tokens_are_taken_whole() -> None:
    program = compile_grammar('root ::= "x" <[7]> (!<[7]>)* <[7]> "y"', int)
    text = Matcher(program)
    assert not text.allows(7, b"")
    assert text.tokens() == (set(), False)
    for token, piece in ((1, b"x"), (7, b""), (2, b"abc"), (3, b"\xe2\x82")):
        assert text.allows(token, piece)
        text.accept(token, piece)
    assert text.tokens() == ({7}, True)
    assert not text.allows(9, b""), "a control token that the grammar does not name"
    text.accept(7, b"")
    assert text.allows(4, b"y") and not text.allows(7, b"")
    assert not text.may_end
    text.accept(4, b"y")
    assert text.may_end


def test_a_token_may_span_rules_but_no_step_for_tokens() -> None:
    text = Matcher(compile_grammar('root ::= "a" b <[7]>\nb ::= "b" "c"', int))
    assert text.allows(1, b"abc")
    assert not text.allows(1, b"abcd")
    text.accept(1, b"abc")
    assert text.allows(7, b"whatever it is spelled")


def test_first_bytes() -> None:
    text = Matcher(compile_grammar('root ::= "é" | [0-9] | "é" "x"', int))
    assert [byte for byte, possible in enumerate(text.first_bytes()) if possible] == [*range(48, 58), 0xC3]
    text.accept(1, b"\xc3")
    assert [byte for byte, possible in enumerate(text.first_bytes()) if possible] == [0xA9]


RUNAWAY = [
    'root ::= "a" root "b" | "a" root "c" | ',
    'root ::= x root y | \nx ::= "a" | "a" x\ny ::= "b"?',
    "root ::= r0"
    + "\n"
    + "\n".join(f'r{n} ::= "a" r{n + 1} "x" | "a" r{n + 1} "y"' for n in range(60))
    + '\nr60 ::= "a"',
]


@pytest.mark.parametrize("grammar", RUNAWAY)
def test_ambiguity_that_grows_is_stopped(grammar: str) -> None:
    with pytest.raises(GrammarError, match="too ambiguous"):
        takes(grammar, "a" * 3000)


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ("root ::= ws ws ws [a] ws\nws ::= [ ]*", " " * 3000 + "a"),
        ('root ::= x root | y root | "z"\nx ::= "a"\ny ::= "a"', "a" * 3000 + "z"),
        ('root ::= "(" root ")" | "x"', "(" * 3000 + "x" + ")" * 3000),
        ("root ::= " + " | ".join(f'"{number:05}"' for number in range(6000)), "05999"),
        (LIST, "[" + "1," * 3000 + "1]"),
    ],
    ids=["blanks", "tails", "depth", "words", "list"],
)
def test_ambiguity_that_does_not_grow_is_no_matter(grammar: str, text: str) -> None:
    assert takes(grammar, text)


def test_what_is_not_needed_any_more_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matcher, "MAX_REMEMBERED", 50)
    depth = 40
    nested = "[" * depth + "1" + "]" * depth
    text = Matcher(compile_grammar(LIST, int))
    assert accepts(text, f"[{nested},{nested},12,[34]]")
    assert text._remembered < 300


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
