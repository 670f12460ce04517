"""Hostile grammars are refused quickly, and the message says where and why; ordinary ones pass."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_host.grammar.gbnf.program import MAX_BEGINNINGS, MAX_STEPS, Program, compile_grammar
from model_host.grammar.gbnf.reader import MAX_NESTING
from model_host.grammar.gbnf.syntax import GrammarError

ARITHMETIC = r"""
root  ::= (expr "=" ws term "\n")+   # one equation a line
expr  ::= term ([-+*/] term)*
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]{1,20} ws
ws    ::= [ \t\n]*
"""


def compiled(grammar: str) -> Program:
    return compile_grammar(grammar, lambda name: name if isinstance(name, int) else 0)


@pytest.mark.parametrize(
    "grammar",
    [
        ARITHMETIC,
        'root ::= "yes" | "no"',
        "root ::= [^\\]x] . !<[7]>? <end>",
        'root ::= a{2,} b{,3} ("c" | )\na ::= "a"\nb ::= "b"',
        'root ::= "|" | "(" | "a ::= b"',
        'root ::= "a" root "b" |\n  "c" # a rule may go on in the next line',
        "root ::=",
    ],
)
def test_ordinary_grammars_pass(grammar: str) -> None:
    compiled(grammar)


@pytest.mark.parametrize(
    ("grammar", "says"),
    [
        ("", "no rule `root`"),
        ('start ::= "a"', "no rule `root`"),
        ("no rule at all", "does not begin with a rule"),
        ('root ::= "a', "does not parse at '\"a' (line 1, column 10, rule `root`)"),
        ('root ::= "a"\nb ::= missing', "`missing`, which is not defined (line 2, column 7, rule `b`)"),
        ('root ::= ("a"', "lacks a `)` at the end"),
        ('root ::= ("a"\nb ::= "b"', "lacks a `)` before the rule `b`"),
        ('root ::= "a")', "without a `(`"),
        ("root ::= *", "nothing before `*`"),
        ('root ::= "a"\nroot ::= "b"', "defines the rule `root` twice (line 2, column 1"),
        ('root ::= root "a"', "left-recursive: it can begin with itself (root → root)"),
        ('root ::= a\na ::= "x"? b\nb ::= a', "(a → b → a)"),
        ('root ::= ("x" | ) root', "left-recursive"),
        ('root ::= x root "z" | "c"\nx ::= y y\ny ::= "a"*', "left-recursive"),
        ('root ::= "c"\nunused ::= unused', "`unused` is left-recursive"),
        ('root ::= "a"{1,1000000000}', "more than 2000 times"),
        ('root ::= "a"{3,1}', "at most 1 but at least 3"),
        ('root ::= "a"{}', "without a number"),
        ('root ::= "a"{00000000000000000009999}', "more than 2000 times"),
        ("root ::= " + "(" * (MAX_NESTING + 2) + '"a"' + ")" * (MAX_NESTING + 2), "nested deeper"),
        ('root ::= "a\0b"', "NUL"),
        ("root ::= [z-a]", "ends before it begins"),
        ("root ::= []", "without any character"),
        ("root ::= [^]", "without any character"),
        ("root ::= [\\uD800-\\uDFFF]", "without any character"),
        ('root ::= "\\uD800"', "half of a surrogate pair"),
        ('root ::= "\\U00110000"', "beyond Unicode"),
        ('root ::= "\\q"', "unknown escape"),
        ("root ::= " + " ".join(['("0123456789"{2000}){1}'] * 40), f"more than {MAX_STEPS} steps"),
        ('root ::= (((("a"{2000}){2000}){2000}){2000}){2000}', f"more than {MAX_STEPS} steps"),
    ],
)
def test_the_message_says_what_is_wrong_and_where(grammar: str, says: str) -> None:
    with pytest.raises(GrammarError) as raised:
        compiled(grammar)
    assert says in str(raised.value)


def _doubling(levels: int, shape: str) -> str:
    """A grammar of a few hundred bytes whose first rule can begin in 2**levels ways."""
    rules = [f"r{n} ::= {shape.format(f'r{n + 1}')}" for n in range(levels)]
    return "\n".join(["root ::= r0", *rules, f'r{levels} ::= "x"'])


@pytest.mark.parametrize("shape", ["{0} | {0}", '{0} "a" | {0} "b"', "({0} | {0})", '"y"? {0} {0} | {0}'])
def test_rules_that_can_begin_in_countless_ways_are_refused(shape: str) -> None:
    # Counted one by one, 2**40 ways would take days.
    with pytest.raises(GrammarError, match=f"more than {MAX_BEGINNINGS} ways"):
        compiled(_doubling(40, shape))


def test_empty_repetitions_within_each_other_count_too() -> None:
    with pytest.raises(GrammarError, match="ways"):
        compiled('root ::= (("a"? "b"?){0,150}){0,150}')


def test_a_long_chain_of_rules_does_not_overflow_the_stack() -> None:
    chain = "\n".join(f"r{n} ::= r{n + 1}" for n in range(15_000))
    compiled(f'root ::= r0\n{chain}\nr15000 ::= "x"')
    with pytest.raises(GrammarError, match="r0 → r1 → r2 → r3 → r4 → … → r0"):
        compiled(f"root ::= r0\n{chain}\nr15000 ::= r0")


EMPTINESS = """
a ::= "x" | d
b ::= ("y" | a) a{3}
c ::= d+
d ::= "z"*
e ::= a "w"
f ::= "v" f
g ::= ""
h ::= (f | e)
"""


@pytest.mark.parametrize(("rule", "empty"), [*((rule, rule in "abcdg") for rule in "abcdefgh")])
def test_emptiness_goes_through_rules_groups_and_repetitions(rule: str, empty: bool) -> None:
    grammar = f'root ::= {rule} root | "end"\n{EMPTINESS}'
    if empty:
        with pytest.raises(GrammarError, match="left-recursive"):
            compiled(grammar)
    else:
        compiled(grammar)


@given(st.text(alphabet='ab"[]()|{}*+?:=\\ \n0-9,<>!.^#', max_size=120))
def test_any_text_is_judged_without_a_crash(text: str) -> None:
    try:
        compiled(text)
    except GrammarError as error:
        assert str(error)


@given(st.text(max_size=60))
def test_any_text_after_a_rule_is_judged_without_a_crash(text: str) -> None:
    try:
        compiled(f"root ::= {text}")
    except GrammarError as error:
        assert str(error)
