"""Our engine and llama.cpp's agree on random grammars and texts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from model_host.grammar.gbnf.matcher import Matcher
from model_host.grammar.gbnf.parser import parse
from model_host.grammar.gbnf.program import compile_grammar
from model_host.grammar.gbnf.syntax import GrammarError
from tests.model_host.grammar.gbnf.sentences import Sentences, accepts, random_grammar
from tests.model_host.grammar.llama_grammar import LlamaGrammar

LONGEST = 5  # characters; with longer texts llama.cpp takes too long on ambiguous grammars


@pytest.fixture(scope="module")
def llama(tiny_model: Path) -> Iterator[LlamaGrammar]:
    made = LlamaGrammar(tiny_model)
    yield made
    made.close()


def texts(grammar: str, chance: random.Random) -> list[str]:
    """Sentences, sentences with one change, and noise."""
    sentences = Sentences(parse(grammar), chance, depth=5, times=2)
    made = [sentences.one()[:LONGEST] for _ in range(4)] if sentences.finite else []
    for text in list(made):
        at = chance.randint(0, len(text))
        made.append(text[:at] + chance.choice(["", "a", "b", "c", "ö"]) + text[at + chance.randint(0, 1) :])
    return [*made, *("".join(chance.choices("abcö", k=chance.randint(0, 5))) for _ in range(3))]


def compare(llama: LlamaGrammar, seed: int) -> Counter[str]:
    """Check that both engines agree on the texts of one random grammar; return counts of the outcomes."""
    chance = random.Random(seed)
    grammar = random_grammar(chance, rules=chance.randint(1, 4), alphabet="abc")
    counted: Counter[str] = Counter()
    try:
        program = compile_grammar(grammar, int)
    except GrammarError:
        # Not given to llama.cpp, which misses left recursion behind rules that can be empty, and then hangs.
        return Counter(refused=1)
    for text in texts(grammar, chance):
        try:
            ours = accepts(Matcher(program), text)
        except GrammarError:
            return Counter(stopped=1)  # llama.cpp would not terminate
        theirs = llama.takes(grammar, text)
        if theirs is None:  # it mistakes repetitions of what can be empty for left recursion
            return Counter(refused_by_llama=1)
        assert ours is theirs, (seed, grammar, text)
        counted["taken" if ours else "not taken"] += 1
    return counted


def test_both_engines_agree(llama: LlamaGrammar) -> None:
    counted = sum((compare(llama, seed) for seed in range(150)), Counter())
    assert counted["taken"] > 70 and counted["not taken"] > 70, counted


@pytest.mark.soak
def test_both_engines_agree_on_many(llama: LlamaGrammar) -> None:
    counted = sum((compare(llama, seed) for seed in range(1000, 1500)), Counter())
    assert counted["taken"] > 250 and counted["not taken"] > 250, counted
