"""The guard before llama.cpp's grammar parser: hostile grammars are refused quickly, ordinary ones pass."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.grammar import MAX_BEGINNINGS, MAX_NESTING, GrammarError, check_grammar

ARITHMETIC = r"""
root  ::= (expr "=" ws term "\n")+   # one equation a line
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]{1,20} ws
ws    ::= [ \t\n]*
"""


@pytest.mark.parametrize(
    "grammar",
    [
        ARITHMETIC,
        'root ::= "yes" | "no"',
        "root ::= [^\\]x] . !<[7]>?",
        'root ::= a{2,} b{,3} ("c" | )\na ::= "a"\nb ::= "b"',
        'root ::= "|" | "(" | "a ::= b"',
    ],
)
def test_ordinary_grammars_pass(grammar: str) -> None:
    check_grammar(grammar)


@pytest.mark.parametrize(
    ("grammar", "says"),
    [
        ("", "no rule `root`"),
        ('start ::= "a"', "no rule `root`"),
        ("no rule at all", "does not begin with a rule"),
        ('root ::= "a', "does not parse at"),
        ("root ::= missing", "`missing` is not defined"),
        ('root ::= ("a"', "`)` is missing at the end"),
        ('root ::= ("a"\nb ::= "b"', "`)` is missing before the rule `b`"),
        ('root ::= "a")', "without a `(`"),
        ("root ::= *", "nothing before it"),
        ('root ::= root "a"', "left-recursive"),
        ('root ::= a\na ::= "x"? b\nb ::= a', "left-recursive"),
        ('root ::= ("x" | ) root', "left-recursive"),
        ('root ::= "a"{1,1000000000}', "more than 2000 times"),
        ("root ::= " + "(" * (MAX_NESTING + 2) + '"a"' + ")" * (MAX_NESTING + 2), "nested deeper"),
        ('root ::= "a\0b"', "NUL"),
    ],
)
def test_the_message_says_what_is_wrong(grammar: str, says: str) -> None:
    with pytest.raises(GrammarError) as raised:
        check_grammar(grammar)
    assert says in str(raised.value)


def _doubling(levels: int, shape: str) -> str:
    """A few hundred bytes whose first rule can begin in 2**levels ways."""
    rules = [f"{_name(n)} ::= {shape.format(_name(n + 1))}" for n in range(levels)]
    return "\n".join([f"root ::= {_name(0)}", *rules, f'{_name(levels)} ::= "x"'])


def _name(number: int) -> str:
    return f"r{number}"


@pytest.mark.parametrize("shape", ["{0} | {0}", '{0} "a" | {0} "b"', "({0} | {0})", '"y"? {0} {0} | {0}'])
def test_exploding_grammars_are_refused_at_once(shape: str) -> None:
    begun = time.process_time()
    with pytest.raises(GrammarError, match=f"more than {MAX_BEGINNINGS} ways"):
        check_grammar(_doubling(40, shape))
    assert time.process_time() - begun < 5.0  # counted one by one, 2**40 ways would take days


def test_a_long_chain_of_rules_does_not_overflow_the_stack() -> None:
    chain = "\n".join(f"{_name(n)} ::= {_name(n + 1)}" for n in range(15_000))
    check_grammar(f'root ::= {_name(0)}\n{chain}\n{_name(15_000)} ::= "x"')


@given(st.text(alphabet='ab"[]()|{}*+?:=\\ \n0-9,<>!.^#', max_size=120))
def test_any_text_is_judged_without_a_crash(text: str) -> None:
    try:
        check_grammar(text)
    except GrammarError as error:
        assert str(error)
