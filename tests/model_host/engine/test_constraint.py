"""Exclusion of tokens by their first bytes, and the search among the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from model_host.engine.constraint import Constraint, Search
from model_host.engine.vocabulary import Vocabulary
from model_host.grammar.gbnf.program import compile_grammar
from tests.model_host.grammar.llama_grammar import LlamaGrammar

GRAMMARS = {
    'root ::= "{\\"name\\": \\"" [a-z ]+ "\\"}"': '{"name": "ada"}',
    'root ::= ("yes" | "yet" | "no" | "née")+ [0-9]?': "yesnéeno1",
    "root ::= [^a-z]*": "Ä€ 12\n",
    'root ::= "a"{1,9} <[7]> (!<[7]>)* ".." | "abc"': "aaaa",
    'root ::= "\\"" ([^"\\\\] | "\\\\" [nt])* "\\""': '"a\\n€ b"',
}


@pytest.fixture(scope="module")
def vocabulary(tiny_model: Path) -> Iterator[Vocabulary]:
    made = LlamaGrammar(tiny_model)
    yield made.vocabulary
    made.close()


def left(constraint: Constraint, vocabulary: Vocabulary) -> set[int]:
    logits = np.zeros(vocabulary.size, np.float32)
    constraint.exclude(logits, endings=True)
    return set(np.flatnonzero(np.isfinite(logits)).tolist())


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_no_allowed_token_is_excluded(vocabulary: Vocabulary, grammar: str) -> None:
    constraint = Constraint(vocabulary, compile_grammar(grammar, vocabulary.grammar_token))
    for token in vocabulary.tokenize(GRAMMARS[grammar], special=False):
        allowed = {other for other in range(vocabulary.size) if constraint.allows(other)}
        assert token in allowed and allowed <= left(constraint, vocabulary)
        constraint.accept(token)


def test_where_one_text_is_possible_the_first_four_bytes_decide(vocabulary: Vocabulary) -> None:
    text = b'{"name": "'
    constraint = Constraint(
        vocabulary, compile_grammar('root ::= "{\\"name\\": \\"" [a-z ]+', vocabulary.grammar_token)
    )
    remaining = left(constraint, vocabulary)
    assert remaining == {
        token
        for token in range(vocabulary.size)
        if (piece := vocabulary.piece(token)) and text.startswith(piece[:4])
    }


def test_the_search_goes_from_the_likeliest_to_all_that_is_allowed(vocabulary: Vocabulary) -> None:
    constraint = Constraint(vocabulary, compile_grammar("root ::= [a-c]+", vocabulary.grammar_token))
    allowed = {token for token in range(vocabulary.size) if constraint.allows(token)}
    logits = np.random.default_rng(1).standard_normal(vocabulary.size, np.float32)
    likeliest = max(allowed, key=lambda token: float(logits[token]))
    search = Search(constraint, logits, endings=False)
    while search.narrow() is None and not search.allows(int(logits.argmax())):
        pass
    assert int(logits.argmax()) == likeliest
    for _ in range(20):
        search.narrow()
    assert set(np.flatnonzero(np.isfinite(logits)).tolist()) == allowed
